"""Checks the manifests of a cluster: against the schemas of Kubernetes, the server and the page that explains them."""

import os
import pathlib
import subprocess
import sys
import tomllib

import kubernetes_validate
import yaml

root = pathlib.Path(sys.argv[1])
page = (root / "docs/cookbook/deploy.md").read_text()
containers = []


def check(true, what):
    if not true:
        sys.exit(what)


for name in ["restate.yaml", "harness.yaml"]:
    for manifest in yaml.safe_load_all((root / "docs/deploy" / name).read_text()):
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
        template = manifest["spec"].get("template")
        if template:
            containers += template["spec"]["containers"]

names = [container["name"] for container in containers]
check(names == ["restate", "worker", "serve"], f"the containers are {names}")

# Every setting is explained.
for container in containers:
    for setting in container["env"]:
        check(f"`{setting['name']}`" in page, f"the page does not explain {setting['name']}")
    for argument in container.get("args", []):
        flag = argument.split("=")[0]
        check(not flag.startswith("--") or f"`{flag}`" in page, f"the page does not explain {flag}")

# Every setting of the server is one that it knows, and has the value that was meant.
settings = {s["name"]: s.get("value", "restate-0") for s in containers[0]["env"]}
dump = [os.environ["SERVER"], "--dump-config"]
dumped = subprocess.run(dump, env=settings, check=True, capture_output=True, text=True).stdout
config = tomllib.loads(dumped)
for name, value in settings.items():
    if name == "RESTATE_LISTEN_MODE":
        continue  # Not a part of the configuration: an option of the command line.
    part = config
    for key in name.removeprefix("RESTATE_").lower().replace("_", "-").split("--"):
        check(key in part, f"the server does not know {name}")
        part = part[key]
    plain = lambda value: str(value).lower().replace(" ", "").replace(".0", "").replace('"', "'").replace("/'", "'")
    check(plain(part) == plain(value), f"{name} is {part} in place of {value}")

# The program takes every argument: it misses the files of the container alone.
for container in containers[1:]:
    arguments = [a.replace("$(ENGINE_PUBLIC_KEY)", "publickeyv1_test") for a in container["args"]]
    run = subprocess.run([os.environ["PROGRAM"], *arguments], capture_output=True, text=True)
    check(run.returncode == 2 and "No such file" in run.stderr, f"{arguments}: {run.stderr}")

print("ok")
