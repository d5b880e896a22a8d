"""The order of the layers. A folder may name and include only folders of an earlier row; test/lint reads this table too."""

LAYERS = [
    ["policy"],
    ["base"],
    ["hardening", "prim", "track"],
    ["sys"],
    ["region"],
    ["guarded", "profile"],
    ["heap"],
    ["alloc"],
    ["api"],
]

# Folders of layers that do not stand in src/.
LAYER_FOLDERS = {
    "policy": "policy",
    "hardening": "hardening",
}

def layer_rank(layer):
    """Position in the order, counted from 0."""
    for i in range(len(LAYERS)):
        if layer in LAYERS[i]:
            return i
    fail("%s is no layer of policy/build/layers.bzl" % layer)

def layer_folder(layer):
    """The folder of the layer, which is its package."""
    return LAYER_FOLDERS.get(layer, "src/" + layer)
