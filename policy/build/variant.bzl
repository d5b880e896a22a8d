"""mi_variant: the artifacts of one variant, and the launcher that preloads it."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//policy:variants.bzl", "SOMINOR", "SOVERSION")
load("//policy/build:copts.bzl", "SHARED_LINKOPTS", "SHARED_STRICT_LINKOPTS")
load("//policy/build:layer.bzl", "layer_target")

# What a variant may have besides the layers: `%s` stands for its short name. `wrap`: names it defines that units of the layers, or the
# compiler in them, call for their own work; these calls go to __wrap_<name>. `linked`: the archive and the object have it too, not the
# shared library alone.
PARTS = {
    "copies": struct(
        library = "//src/api:copies_%s",
        exports = "//src/api:shared/copies.map",
        linked = False,
        wrap = ["memcpy", "memmove", "memset"],
    ),
    "order": struct(
        library = "//src/track:order_%s",
        exports = "//src/track:asan/order.map",
        linked = False,
        wrap = [],
    ),
    "signals": struct(
        library = "//src/api:signals_%s",
        exports = "//src/api:shared/signals.map",
        linked = True,
        wrap = [],
    ),
}

VariantInfo = provider(
    doc = "The artifacts of a variant.",
    fields = {
        "archive": "the static library, one member that holds everything",
        "object": "the single relocatable object",
        "shared": "the shared library under its SONAME",
        "stem": "what the file names begin with, without `lib`",
    },
)

def _objects(deps):
    found = []
    for dep in deps:
        for linker_input in dep[CcInfo].linking_context.linker_inputs.to_list():
            for library in linker_input.libraries:
                # Both fields hold the same code: -fPIC is among the flags of every unit.
                objects = library.pic_objects if library.pic_static_library else library.objects
                for object in objects:
                    if object not in found:
                        found.append(object)
    return found

def _variant_impl(ctx):
    toolchain = find_cc_toolchain(ctx)
    feature_configuration = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    stem = ctx.attr.stem
    objects = _objects(ctx.attr.deps)
    if not objects:
        fail("no layer has a unit")

    # What the command line adds to every link: --linkopt, for a sanitizer mostly.
    user_linkopts = ctx.fragments.cpp.linkopts
    sanitized = [o for o in user_linkopts if o.startswith("-fsanitize")]

    # One version script: the names of parts come before its `local`.
    exports = ctx.actions.declare_file("_joined/%s.map" % stem)
    ctx.actions.run_shell(
        command = """out="$1" map="$2"; shift 2
{ sed '/^  local:/,$d' "$map"; cat /dev/null "$@"; sed -n '/^  local:/,$p' "$map"; } > "$out" """,
        arguments = [exports.path, ctx.file.exports.path] + [f.path for f in ctx.files.part_exports],
        inputs = [ctx.file.exports] + ctx.files.part_exports,
        outputs = [exports],
        mnemonic = "MiExports",
        progress_message = "Listing the names of lib%s.so" % stem,
    )
    part_objects = [o for o in _objects(ctx.attr.parts) if o not in objects]

    real = ctx.actions.declare_file("lib%s.so.%s.%s" % (stem, SOVERSION, SOMINOR))
    soname = "lib%s.so.%s" % (stem, SOVERSION)
    link = ctx.actions.args()
    link.add("-shared")
    link.add("-o", real)
    link.add("-Wl,-soname," + soname)
    link.add(exports, format = "-Wl,--version-script=%s")
    link.add_all(objects + part_objects)
    link.add_all(ctx.attr.wrap, format_each = "-Wl,--wrap=%s")
    link.add_all(ctx.attr.linkopts)

    # The run time of a sanitizer comes with the program, so its symbols are open here.
    link.add_all(SHARED_LINKOPTS + ([] if sanitized else SHARED_STRICT_LINKOPTS))
    link.add_all(user_linkopts)
    ctx.actions.run(
        executable = toolchain.compiler_executable,
        arguments = [link],
        inputs = depset(objects + part_objects + [exports], transitive = [toolchain.all_files]),
        outputs = [real],
        use_default_shell_env = True,
        mnemonic = "MiSharedLibrary",
        progress_message = "Linking lib%s.so" % stem,
    )

    # Relative, so that the files can be copied elsewhere together.
    links = []
    for name in [soname, "lib%s.so" % stem]:
        link_file = ctx.actions.declare_file(name)
        ctx.actions.run_shell(
            command = 'ln -s "$1" "$2"',
            arguments = [real.basename, link_file.path],
            inputs = [real],
            outputs = [link_file],
            mnemonic = "MiSoname",
            progress_message = "Naming %s" % name,
        )
        links.append(link_file)

    # Names that are not exported become local, so that nothing of ours can clash with the program that we are linked into.
    joined = ctx.actions.declare_file("_joined/%s.o" % stem)
    join = ctx.actions.args()
    join.add("-r")
    join.add("-nostdlib")
    join.add("-o", joined)
    join.add_all(objects)
    ctx.actions.run(
        executable = toolchain.compiler_executable,
        arguments = [join],
        inputs = depset(objects, transitive = [toolchain.all_files]),
        outputs = [joined],
        use_default_shell_env = True,
        mnemonic = "MiJoin",
        progress_message = "Joining %s.o" % stem,
    )
    object = ctx.actions.declare_file("%s.o" % stem)
    localize = ctx.actions.args()
    localize.add("--localize-hidden")
    localize.add(joined)
    localize.add(object)
    ctx.actions.run(
        executable = toolchain.objcopy_executable,
        arguments = [localize],
        inputs = depset([joined], transitive = [toolchain.all_files]),
        outputs = [object],
        use_default_shell_env = True,
        mnemonic = "MiLocalize",
        progress_message = "Hiding what %s.o does not export" % stem,
    )

    # One member: whoever takes one of our functions takes them all, so a program never mixes two allocators.
    archive = ctx.actions.declare_file("lib%s.a" % stem)
    pack = ctx.actions.args()
    pack.add("rcsD")
    pack.add(archive)
    pack.add(object)
    ctx.actions.run(
        executable = toolchain.ar_executable,
        arguments = [pack],
        inputs = depset([object], transitive = [toolchain.all_files]),
        outputs = [archive],
        use_default_shell_env = True,
        mnemonic = "MiArchive",
        progress_message = "Packing lib%s.a" % stem,
    )

    library = cc_common.create_library_to_link(
        actions = ctx.actions,
        feature_configuration = feature_configuration,
        cc_toolchain = toolchain,
        static_library = archive,
        pic_static_library = archive,
        alwayslink = True,
    )
    linker_input = cc_common.create_linker_input(
        owner = ctx.label,
        libraries = depset([library]),
        user_link_flags = depset(["-lpthread"]),
    )
    artifacts = depset([real, archive, object] + links)
    return [
        DefaultInfo(files = artifacts, runfiles = ctx.runfiles(files = [real] + links)),
        CcInfo(
            compilation_context = ctx.attr.headers[CcInfo].compilation_context,
            linking_context = cc_common.create_linking_context(linker_inputs = depset([linker_input])),
        ),
        VariantInfo(stem = stem, shared = links[0], archive = archive, object = object),
        OutputGroupInfo(
            shared = depset([real] + links),
            soname = depset([links[0]]),
            archive = depset([archive]),
            object = depset([object]),
            exports = depset([exports]),
        ),
    ]

# Bazel before version 5 takes as `malloc` of a program only rules of this very name.
cc_library = rule(
    implementation = _variant_impl,
    attrs = {
        "deps": attr.label_list(
            doc = "the layers, in the variant",
            providers = [CcInfo],
        ),
        "exports": attr.label(
            doc = "version script: the names that every shared library shows",
            allow_single_file = True,
            mandatory = True,
        ),
        "headers": attr.label(
            doc = "the public headers, for targets that depend on this one",
            providers = [CcInfo],
        ),
        "linkopts": attr.string_list(),
        "part_exports": attr.label_list(
            doc = "names that the parts add to the version script",
            allow_files = True,
        ),
        "parts": attr.label_list(
            doc = "units of the shared library alone",
            providers = [CcInfo],
        ),
        "wrap": attr.string_list(doc = "names that the parts define, and that the other units find as __wrap_<name>"),
        "stem": attr.string(mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    provides = [CcInfo, VariantInfo],
    toolchains = use_cc_toolchain(),
    doc = "All artifacts of a variant, which is also a library for `deps` and `malloc`.",
)

def _launcher_impl(ctx):
    info = ctx.attr.variant[VariantInfo]
    script = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.expand_template(
        template = ctx.file._template,
        output = script,
        substitutions = {"%{library}": info.shared.basename},
        is_executable = True,
    )
    files = ctx.attr.variant[DefaultInfo]
    return [DefaultInfo(
        executable = script,
        files = depset([script], transitive = [files.files]),
        runfiles = files.default_runfiles,
    )]

mi_launcher = rule(
    implementation = _launcher_impl,
    attrs = {
        "variant": attr.label(providers = [VariantInfo]),
        "_template": attr.label(
            default = "//policy/build:with.sh.tpl",
            allow_single_file = True,
        ),
    },
    executable = True,
    doc = "Runs the program of its command line with the variant preloaded.",
)

def mi_variant(v):
    """The target of a variant, by its row in policy/variants.bzl, and `:with_<name>`."""
    cc_library(
        name = v.name,
        stem = v.stem,
        exports = "//src/api:exports.map",
        headers = "//include:headers",
        linkopts = v.linkopts,
        part_exports = [PARTS[part].exports for part in v.parts],
        parts = [PARTS[part].library % v.short for part in v.parts if not PARTS[part].linked],
        tags = v.tags,
        visibility = ["//visibility:public"],
        wrap = [name for part in v.parts for name in PARTS[part].wrap],
        deps = [
            layer_target("api", v.short),
            "//src/api:override_" + v.short,
        ] + [PARTS[part].library % v.short for part in v.parts if PARTS[part].linked],
    )
    mi_launcher(
        name = "with_" + v.name,
        variant = ":" + v.name,
        tags = v.tags,
        visibility = ["//visibility:public"],
    )
    for group in ["shared", "soname", "archive", "object", "exports"]:
        native.filegroup(
            name = "%s_%s" % (v.name, group),
            srcs = [":" + v.name],
            output_group = group,
            tags = v.tags,
            visibility = ["//visibility:public"],
        )
