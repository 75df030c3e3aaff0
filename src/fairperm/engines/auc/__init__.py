"""Engines of the AUC: of plain rows, of weights and clusters, and of two models."""
