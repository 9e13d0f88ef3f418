"""One forward pass in which heads are observed, edited and differentiated, and the checks of it."""
