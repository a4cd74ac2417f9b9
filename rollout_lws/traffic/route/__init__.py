"""HTTPRoutes: rules that send traffic weights and matches to two versions, and the user's rules restored."""
