"""An audit as a page: its contents, its sentences, its charts."""
