"""HTML and JSON documents from values, and the words that pages and the command line share."""
