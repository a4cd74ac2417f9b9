"""Scripts for objects of custom kinds, written for these tests, and a runner that all stories share."""

from __future__ import annotations

import atexit
from functools import cache

from rollout_lws.scripting.runner import Runner
from rollout_lws.traffic.custom.scripts import Evaluation, Outcome

_runner = Runner()
atexit.register(_runner.close)


@cache
def evaluated(asked: Evaluation) -> Outcome:
    """What a script returns, by a process like the controller's. Stories have many inputs in common."""
    return _runner.run(asked.script, asked.given)


#: For a VirtualService: the stable destination of each http route without matches gives up a part of its weight.
VIRTUAL_SERVICE = """
local spec, stable, canary = obj.data.spec, obj.stableService, obj.canaryService
local given = obj.canaryWeight < 0 and 0 or obj.canaryWeight

local function leads_to_stable(destination)
  return destination.host == stable or string.match(destination.host, "^([^.]+)%.") == stable
end

local function share(routes)
  for index = 1, #routes do
    local route = routes[index]
    if leads_to_stable(route.destination) then
      local whole = route.weight or 100
      local part = math.floor(whole * given / 100)
      local port = route.destination.port
      route.weight = whole - part
      table.insert(routes, { destination = { host = canary, port = port }, weight = part })
    end
  end
end

local function headers_of(match)
  local found = {}
  for _, header in ipairs(match.headers or {}) do
    local way = header.type == "RegularExpression" and "regex" or "exact"
    found[header.name] = { [way] = header.value }
  end
  return found
end

for _, rule in ipairs(spec.http or {}) do
  if not rule.match and given > 0 then share(rule.route) end
end
for index, match in ipairs(obj.matches or {}) do
  local rule = { match = { { headers = headers_of(match) } }, route = { { destination = { host = canary } } } }
  if obj.requestHeaderModifier then
    local set = {}
    for _, each in ipairs(obj.requestHeaderModifier.set or {}) do set[each.name] = each.value end
    rule.headers = { request = { set = set } }
  end
  table.insert(spec.http, index, rule)
end
return obj.data
"""

#: For a DestinationRule: a subset of the new version's pods.
DESTINATION_RULE = """
local spec = obj.data.spec
spec.subsets = spec.subsets or {}
table.insert(spec.subsets, { name = "canary", labels = { version = "canary" } })
return obj.data
"""

#: For an HTTPRoute, as if this version did not know it.
HTTP_ROUTE = """
local function copied(value)
  if type(value) ~= "table" then return value end
  local found = {}
  for key, member in pairs(value) do found[key] = copied(member) end
  return found
end

local function to_canary(ref, weight)
  local found = copied(ref)
  found.name, found.weight = obj.canaryService, weight
  return found
end

local rules, added = obj.data.spec.rules, {}
for _, rule in ipairs(rules) do
  local refs = rule.backendRefs
  for index = 1, #refs do
    local ref = refs[index]
    if ref.name == obj.stableService then
      for _, match in ipairs(obj.matches or {}) do
        table.insert(added, { matches = { copied(match) }, backendRefs = { to_canary(ref, 1) } })
      end
      if obj.canaryWeight >= 0 then
        ref.weight = obj.stableWeight
        table.insert(refs, to_canary(ref, obj.canaryWeight))
      end
    end
  end
end
for _, rule in ipairs(added) do table.insert(rules, rule) end
return obj.data
"""

#: For an object whose annotations say all.
ANNOTATIONS = """
local annotations = obj.data.annotations or {}
annotations["mesh.example.com/canary"] = obj.canaryService
annotations["mesh.example.com/weight"] = tostring(obj.canaryWeight)
obj.data.annotations = annotations
return obj.data
"""
