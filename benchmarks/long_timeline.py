"""An export of nsys as long as wanted: training steps of 500 kernels on four streams.

python benchmarks/long_timeline.py FILE [KERNELS]

5 million kernels, the default, make 1 GB in half a minute: with two CUDA calls and a call of the
operating system each. Columns and types are those of nsys 2025.3.
"""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

STEP = 500  # kernels in a step, chosen: a training step of a transformer with some layers
NAMES = 200  # kernels with a name of their own
PROCESS, THREAD = 4_000 << 24, 4_000 << 24 | 4_000

SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, cuDevice INTEGER, name TEXT, smCount INTEGER,
    totalMemory INTEGER, computeMajor INTEGER, computeMinor INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,
    eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,
    returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER,
    streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
    launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL,
    gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,
    blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
    staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL,
    localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,
    gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER,
    sharedMemoryLimitConfig INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,
    correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL,
    srcKind INTEGER, dstKind INTEGER);
CREATE TABLE OSRT_API (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL,
    nestingLevel INTEGER, callchainId INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,
    globalTid INTEGER, text TEXT, textId INTEGER);
"""

# A step takes 500 x 10 µs. Times and sizes vary by products with large primes.
EVENTS = f"""
CREATE TEMP TABLE launches AS WITH RECURSIVE counted(i) AS
    (SELECT 0 UNION ALL SELECT i + 1 FROM counted WHERE i + 1 < :kernels) SELECT i FROM counted;
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 1000000 + i * 10000,
    1000000 + i * 10000 + 2500 + i * 7919 % 1500, 0, {THREAD}, i + 1, 1, 0, NULL FROM launches;
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 1000000 + i * 10000 + 4200,
    1000000 + i * 10000 + 4600, 0, {THREAD}, 2147483647 - i, 4, 0, NULL FROM launches;
INSERT INTO OSRT_API SELECT 1000000 + i * 10000 + 4700, 1000000 + i * 10000 + 4900, 27, {THREAD},
    i, 5, 0, 0, 0 FROM launches;
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 1000000 + i * 10000 + 5000,
    1000000 + i * 10000 + 9000, 0, {THREAD}, 2000000000 + i, 2, 0, NULL
    FROM launches WHERE i % {STEP} IN (0, {STEP - 1});
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 1000000 + i * 10000 + 6000 + i * 104729 % 2000,
    1000000 + i * 10000 + 9000 + i % {STEP} * 104723 % 30000 + i * 15485863 % 500, 0, 1, NULL,
    7 + i % 4, i + 1, {PROCESS}, 10 + i % {STEP} % {NAMES}, 1010 + i % {STEP} % {NAMES}, NULL, 1,
    0, 32 + i % {STEP} % 8 * 16, 1 + i % {STEP} * 6101 % 4096, 1 + i % {STEP} % 3, 1, 256, 1, 1, 0,
    i % {STEP} % 5 * 16384, 0, 155713536, i, 32768, NULL, 0 FROM launches;
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY SELECT 1000000 + i * 10000 + 7000,
    1000000 + i * 10000 + 20000, 0, 1, 15, 2000000000 + i, {PROCESS}, 1 << 20,
    1 + (i % {STEP} > 0), 2 * (i % {STEP} > 0), 2 * (i % {STEP} = 0)
    FROM launches WHERE i % {STEP} IN (0, {STEP - 1});
INSERT INTO NVTX_EVENTS SELECT 1000000 + i * 10000 - 500, 1000000 + (i + {STEP}) * 10000 - 600, 59,
    {THREAD}, NULL, 3 FROM launches WHERE i % {STEP} = 0;
INSERT INTO NVTX_EVENTS SELECT 1000000 + i * 10000 - 400, 1000000 + (i + 100) * 10000 - 700, 59,
    {THREAD}, 'layer ' || (i % {STEP} / 100), NULL FROM launches WHERE i % 100 = 0;
DROP TABLE launches;
"""


def write(path: Path, kernels: int = 5_000_000) -> None:
    """Write the export; it replaces what is there."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA temp_store = MEMORY")
        database.executescript(SCHEMA)
        database.execute("BEGIN")
        texts = {1: "cudaLaunchKernel_v7000", 2: "cudaMemcpyAsync_v3020", 3: "step"}
        texts |= {4: "cudaStreamIsCapturing_v10000", 5: "pthread_mutex_lock"}
        for number in range(NAMES):
            texts[10 + number] = f"void layer_{number}<float, {number}>(float *, const float *)"
            texts[1010 + number] = f"layer_{number}"
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", texts.items())
        database.execute(
            "INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'NVIDIA H200', 132, 150754820096, 9, 0)"
        )
        for statement in EVENTS.split(";"):
            named = {"kernels": kernels} if ":kernels" in statement else {}
            database.execute(statement, named)
        database.execute("COMMIT")


if __name__ == "__main__":
    write(Path(sys.argv[1]), *map(int, sys.argv[2:]))
