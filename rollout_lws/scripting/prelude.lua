-- What a script sees of Lua, and the end of one that goes on for too long. Runs before each script.
--
-- Arguments: the most instructions, and a function that is told which line runs now: now and then, and before each call
-- of a function of Lua's own that may take long, which no hook can end. Gives the function that loads and runs a script.
local most, at = ...

local getinfo, sethook, loadstring = debug.getinfo, debug.sethook, loadstring
local type, pairs, ipairs, next, select, tostring, tonumber = type, pairs, ipairs, next, select, tostring, tonumber
local error, pcall, setmetatable, getmetatable = error, pcall, setmetatable, getmetatable
local find, sub, byte, char, format, gsub = string.find, string.sub, string.byte, string.char, string.format, string.gsub
local rep, concat, floor, huge = string.rep, table.concat, math.floor, math.huge

-- The line of the script that is running now.
local function line()
  for level = 2, 50 do
    local info = getinfo(level, "Sl")
    if info == nil then break end
    if info.source == "=script" then return info.currentline end
  end
  return 0
end

-- Functions of Lua's own that may take long for one call: find out who calls them.
local function told(call)
  return function(...)
    at(line())
    return call(...)
  end
end

for _, name in ipairs({ "rep", "format", "reverse", "upper", "lower" }) do
  string[name] = told(string[name])
end
-- Lua follows a pattern by calls in C, as deep as the pattern is long.
for _, name in ipairs({ "find", "match", "gmatch", "gsub" }) do
  local call = told(string[name])
  string[name] = function(text, pattern, ...)
    if type(pattern) == "string" and #pattern > 1000 then error("pattern of more than 1000 characters", 2) end
    return call(text, pattern, ...)
  end
end
string.gfind = string.gmatch
for _, name in ipairs({ "concat", "sort", "insert", "remove" }) do
  table[name] = told(table[name])
end
string.dump = nil

-- JSON, with the rules of the scripts' format: a table is an array or an object by its first key, an empty one is null.
local json = {}
local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function quoted(text)
  return '"' .. gsub(text, '[%c"\\\127]', function(found)
    return escapes[found] or format("\\u%04x", byte(found))
  end) .. '"'
end

local function written(value, open)
  local kind = type(value)
  if kind == "nil" then return "null" end
  if kind == "boolean" then return tostring(value) end
  if kind == "string" then return quoted(value) end
  if kind == "number" then
    if value ~= value or value == huge or value == -huge then error("cannot encode " .. tostring(value) .. " to JSON", 0) end
    if value == floor(value) and value > -1e15 and value < 1e15 then return format("%d", value) end
    return format("%.17g", value)
  end
  if kind ~= "table" then error("cannot encode " .. kind .. " to JSON", 0) end
  if open[value] then error("cannot encode recursively nested tables to JSON", 0) end
  local first = next(value)
  if first == nil then return "null" end
  open[value] = true
  local parts, wanted = {}, type(first)
  if wanted == "number" then
    local count = 0
    for key in pairs(value) do
      if type(key) ~= "number" then error("cannot encode mixed or invalid key types", 0) end
      count = count + 1
    end
    for index = 1, count do
      if value[index] == nil then error("cannot encode sparse array", 0) end
      parts[index] = written(value[index], open)
    end
    open[value] = nil
    return "[" .. concat(parts, ",") .. "]"
  end
  if wanted ~= "string" then error("cannot encode mixed or invalid key types", 0) end
  for key, member in pairs(value) do
    if type(key) ~= "string" then error("cannot encode mixed or invalid key types", 0) end
    parts[#parts + 1] = quoted(key) .. ":" .. written(member, open)
  end
  open[value] = nil
  return "{" .. concat(parts, ",") .. "}"
end

function json.encode(value)
  local done, text = pcall(written, value, {})
  if done then return text end
  return nil, text
end

local unescaped = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }

local function utf8(point)
  if point < 128 then return char(point) end
  if point < 2048 then return char(192 + floor(point / 64), 128 + point % 64) end
  if point < 65536 then
    return char(224 + floor(point / 4096), 128 + floor(point / 64) % 64, 128 + point % 64)
  end
  return char(240 + floor(point / 262144), 128 + floor(point / 4096) % 64, 128 + floor(point / 64) % 64, 128 + point % 64)
end

local function malformed(text, position)
  error("no JSON at character " .. position, 0)
end

local function string_at(text, position)
  local parts = {}
  position = position + 1
  while true do
    local stop = find(text, '["\\]', position)
    if stop == nil then malformed(text, position) end
    parts[#parts + 1] = sub(text, position, stop - 1)
    if byte(text, stop) == 34 then return concat(parts), stop + 1 end
    local letter = sub(text, stop + 1, stop + 1)
    if letter == "u" then
      local code = tonumber(sub(text, stop + 2, stop + 5), 16)
      if code == nil then malformed(text, stop) end
      position = stop + 6
      if code >= 55296 and code < 56320 and sub(text, position, position + 1) == "\\u" then
        local low = tonumber(sub(text, position + 2, position + 5), 16)
        if low ~= nil and low >= 56320 and low < 57344 then
          code = 65536 + (code - 55296) * 1024 + (low - 56320)
          position = position + 6
        end
      end
      parts[#parts + 1] = utf8(code)
    elseif unescaped[letter] then
      parts[#parts + 1] = unescaped[letter]
      position = stop + 2
    else
      malformed(text, stop)
    end
  end
end

local function space(text, position)
  return find(text, "[^ \t\r\n]", position) or #text + 1
end

local function value_at(text, position)
  position = space(text, position)
  local first = sub(text, position, position)
  if first == '"' then return string_at(text, position) end
  if first == "{" or first == "[" then
    local found, index, closing = {}, 1, first == "{" and "}" or "]"
    position = space(text, position + 1)
    if sub(text, position, position) == closing then return found, position + 1 end
    while true do
      local key, member = index, nil
      if closing == "}" then
        if sub(text, position, position) ~= '"' then malformed(text, position) end
        key, position = string_at(text, position)
        position = space(text, position)
        if sub(text, position, position) ~= ":" then malformed(text, position) end
        position = position + 1
      end
      member, position = value_at(text, position)
      found[key] = member
      index = index + 1
      position = space(text, position)
      local after = sub(text, position, position)
      if after == closing then return found, position + 1 end
      if after ~= "," then malformed(text, position) end
      position = space(text, position + 1)
    end
  end
  for word, meaning in pairs({ ["true"] = true, ["false"] = false }) do
    if sub(text, position, position + #word - 1) == word then return meaning, position + #word end
  end
  if sub(text, position, position + 3) == "null" then return nil, position + 4 end
  local _, stop = find(text, "^-?%d+%.?%d*[eE]?[+-]?%d*", position)
  local number = stop and tonumber(sub(text, position, stop))
  if number == nil then malformed(text, position) end
  return number, stop + 1
end

function json.decode(text)
  if type(text) ~= "string" then error("bad argument #1 to 'decode' (string expected)", 2) end
  at(line())
  local done, value, stop = pcall(value_at, text, 1)
  if not done then return nil, value end
  stop = space(text, stop)
  if stop <= #text then return nil, "no JSON at character " .. stop end
  return value
end

-- All that there is: no way to files, programs, modules, other scripts, coroutines, or the host.
local names = {
  "_VERSION", "assert", "error", "getmetatable", "ipairs", "next", "pairs", "pcall", "rawequal", "rawget", "rawset",
  "select", "setmetatable", "tonumber", "tostring", "type", "unpack", "xpcall",
}
local seen = { json = json, math = math, string = string, table = table, print = function() end }
local globals = _G
for _, name in ipairs(names) do seen[name] = globals[name] end
math.random, math.randomseed = nil, nil
-- Where a table is in memory differs each time, and a result depends on nothing but the input.
seen.tostring = function(value)
  local kind, meta = type(value), getmetatable(value)
  if kind == "table" and type(meta) == "table" and meta.__tostring then return tostring(value) end
  if kind == "table" or kind == "function" or kind == "userdata" then return kind end
  return tostring(value)
end
for name in pairs(globals) do globals[name] = nil end
for name, value in pairs(seen) do globals[name] = value end
globals._G = globals
getmetatable("").__metatable = "strings"

-- Ends a script that a protected call of its own would let go on.
local used, step = 0, 10000
local function count()
  used = used + step
  at(line())
  if used < most then return end
  step = 1
  sethook(count, "", 1)
  error("line " .. line() .. ": runs for more than " .. most .. " instructions", 0)
end

return function(text)
  local run, malformed = loadstring(text, "=script")
  if run == nil then error(malformed, 0) end
  sethook(count, "", step)
  return run()
end
