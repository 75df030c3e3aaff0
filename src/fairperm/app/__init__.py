"""The page: an audit without code, on one's own machine. It runs what the command line would."""
