"""Ray itself: what it reads from the environment, how it is started quietly, which cores it has."""
