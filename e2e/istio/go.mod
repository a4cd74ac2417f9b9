// Its definitions are read and no package of it is imported, so `go mod tidy` would drop it.
module rollout-lws/e2e/istio

go 1.26.0

require istio.io/api v1.32.0
