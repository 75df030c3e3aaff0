"""What tests and audits return: frozen dataclasses; no computing here."""
