# Owns: the work of the python rows: dictionaries, lists, strings, json, objects of a class.
# May include: the standard library.
# Called by: programs.py.
# Invariants: no random source, no time: the output is the same on every run.
import json
import sys

scale = int(sys.argv[1]) if len(sys.argv) > 1 else 100


class Node:
    def __init__(self, key, payload):
        self.key = key
        self.payload = payload
        self.children = []


def build(depth, key):
    node = Node(key, {"name": "node %d" % key, "weight": key * 0.5})
    if depth > 0:
        node.children = [build(depth - 1, key * 3 + i) for i in range(3)]
    return node


def plain(node):
    return {"key": node.key, "payload": node.payload, "children": [plain(c) for c in node.children]}


total = 0
for round_number in range(max(1, 2 * scale // 100)):
    text = json.dumps(plain(build(8, round_number)))
    total += len(text) + len(json.loads(text)["children"])

words = {}
for i in range(150000 * scale // 100):
    word = "word%d" % (i * 7919 % 30011)
    words.setdefault(word, []).append(i)
    if i % 5 == 0:
        words.pop("word%d" % (i * 31 % 30011), None)
total += sum(len(v) for v in words.values())

lines = [",".join(str(i * k) for k in range(12)) for i in range(8000 * scale // 100)]
total += sum(len(line.split(",")) for line in lines) + len("\n".join(lines))

buffer = bytearray()
for i in range(60000 * scale // 100):
    buffer += b"%d;" % i
total += len(bytes(buffer).split(b";"))
print(total)
