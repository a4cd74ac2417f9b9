"""What is asked of Prometheus: samples of pods, which are read as pods are, and queries of users. Pure."""
