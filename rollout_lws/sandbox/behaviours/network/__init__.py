"""Controllers of traffic: EndpointSlices, and the status of Gateways, routes and pools."""
