"""Tools of the project: pages and pictures of the site, data sets, the map of the source."""
