"""Is the gap between two groups real or chance?"""
