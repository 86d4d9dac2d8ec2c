import array
import json
import statistics
import sys
from pathlib import Path

TIMES = ("nv/cold/time/gpu/median", "nv/cold/time/gpu/mean", "nv/cpu_only/time/cpu/mean")
SAMPLES = "nv/json/bin:nv/cold/sample_times"

source, target = map(Path, sys.argv[1:])
file = json.loads(source.read_text())
program = Path(file["meta"]["argv"][0]).name
version = file["meta"]["version"]["nvbench"]["string"]
gpus = {gpu["id"]: gpu["name"] for gpu in file["devices"] or ()}
rows = []
for bench in file["benchmarks"]:
    for state in bench["states"] or ():
        summaries = {
            summary["tag"]: {row["name"]: row["value"] for row in summary["data"]}
            for summary in state["summaries"] or ()
        }
        time = next((tag for tag in TIMES if tag in summaries), None)
        if state["is_skipped"] or time is None:
            continue
        stats = {"median": float(summaries[time]["value"])}
        if samples := summaries.get(SAMPLES):  # little-endian 32-bit
            data = array.array("f", (source.parent / samples["filename"]).read_bytes())
            assert len(data) == int(samples["size"])
            stats, time = {"median": statistics.median(data), "data": data.tolist()}, "samples"
        shape = " ".join(f"{axis['name']}={axis['value']}" for axis in state["axis_values"] or ())
        about = {"variant": bench["name"], "gpu": gpus.get(state["device"], "")}
        timer = {"timer": f"nvbench {version} {time}"}
        name = f"{program}[{shape}]"
        rows.append({"fullname": name, "stats": stats, "extra_info": about, "options": timer})
target.write_text(json.dumps({"machine_info": {}, "benchmarks": rows}))
