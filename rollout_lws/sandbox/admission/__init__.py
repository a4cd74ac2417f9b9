"""What kube-apiserver fills in, refuses and keeps about each kind before it stores an object."""
