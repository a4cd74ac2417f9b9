"""The edge to the API server: connection, client, informers, work queue, Events, Lease; nothing about releases."""
