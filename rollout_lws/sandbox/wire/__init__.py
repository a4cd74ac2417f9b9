"""Selectors, refusals and protobuf as clients send and get them."""
