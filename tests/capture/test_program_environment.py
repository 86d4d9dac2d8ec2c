"""Which variables a profiled program gets."""

from __future__ import annotations

import pytest

from profkit.capture.program_environment import failure_remedy, is_secret, reduced_environment

PLANTED = """\
ADMIN_PASS ANTHROPIC_API_KEY API_AUTH APP_SECRET AUTH_TOKEN AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
AWS_SESSION_TOKEN AZURE_CLIENT_SECRET BASIC_AUTH COOKIE CI_JOB_TOKEN CI_JOB_JWT DB_PASS DB_PASSWORD
DB_PWD DJANGO_SECRET_KEY DOCKER_AUTH_CONFIG ENCRYPTION_KEY FTP_PASSWD GH_TOKEN GITHUB_PAT
GITHUB_TOKEN GOOGLE_APPLICATION_CREDENTIALS HF_TOKEN HTTP_AUTHORIZATION JWT KAGGLE_KEY KEY
KEY_PASSPHRASE LICENSE_KEY MASTERPASSWORD MYSQL_PWD NPM_CONFIG__AUTH OPENAI_KEY OPENAIAPIKEY
PGPASSWORD PRIVATEKEY REGISTRY_CREDS S3_SECRET SENTRY_DSN SESSION_COOKIE SIGNING-KEY
SLACK_WEBHOOK_URL SMTP_PASS SSHPASS SSH_AUTH_SOCK SSH_PRIVATE_KEY TOTP_SECRET VAULT_TOKEN
WANDB_API_KEY dbPassword openaiKey userAuthToken
""".split()  # noqa: SIM905
ADDRESSES = {
    "DATABASE_URL": "postgres://planted:hunter2@db.example/x",
    "CACHE": "redis://:hunter2/x@cache.example:6379/0",
    "https_proxy": "http://planted:hunter2@proxy.example:3128",
    "ALL_PROXY": "planted:hunter2@proxy.example:3128",
    "INDEX": "https://hunter2@packages.example/simple",
    "STORE": "Server=tcp:db.example;User Id=planted;Password=hunter2;Contact=a@b.example",
    "PEM": "-----BEGIN RSA PRIVATE KEY-----\nhunter2@\n-----END RSA PRIVATE KEY-----",
    "HEADER": "Bearer hunter2@",
}
PASSED = {
    "KERNEL": "v2", "KERNEL_PATH": "/a/b:/c", "MONKEY": "patched", "KEYBOARD": "us",
    "AUTHOR": "ann", "GIT_AUTHOR_NAME": "Ann", "TOKENIZERS_PARALLELISM": "false",
    "MAX_TOKENS": "4096",
    "NUM_KEYS": "100000", "USE_AUTH": "1", "REQUIRE_TOKEN": "false", "PASSES": "128", "PASS": "2",
    "BYPASS_CACHE": "always", "COMPASS": "north", "PASSTHROUGH": "all", "KEYWORD": "a", "PWD": "/x",
    "OLDPWD": "/y", "PATH": "/usr/bin:/bin", "PATTERN": "a*", "HTTP_PROXY": "http://proxy.example:3128",
    "DATA_URL": "s3://bucket/a@2", "INDEX_URL": "https://host.example:8443/simple@v2",
    "XLA_FLAGS": "--xla_gpu_autotune_level=4 --xla_dump_to=/x", "CUDA_VISIBLE_DEVICES": "0,1",
    "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "TURKEY": "x", "HOTKEY": "y",
    "NCCL_SOCKET_IFNAME": "eth0", "LD_LIBRARY_PATH": "/usr/lib",
    "XAUTHORITY": "/home/a/.Xauthority",
    "MAIL": "ann@example.org",
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_name_that_looks_secret_is_withheld(name: str) -> None:
    assert is_secret(name, "hunter2-planted")
    assert is_secret(name.lower() if "_" in name else name, "12345678")


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_value_that_looks_secret_is_withheld(name: str) -> None:
    assert is_secret(name, ADDRESSES[name])


@pytest.mark.parametrize("name", PASSED)
def test_what_a_program_is_configured_by_reaches_it(name: str) -> None:
    assert not is_secret(name, PASSED[name])


def test_what_is_kept_is_passed_and_a_failure_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PASS", "hunter2")
    assert "DB_PASS" not in reduced_environment()
    assert reduced_environment(["DB_PASS"])["DB_PASS"] == "hunter2"
    remedy = failure_remedy("KeyError: 'DB_PASS'", "run it alone")
    assert remedy == "pass it the variable: --keep-env DB_PASS"
    assert failure_remedy("KeyError: 'HOME'", "run it alone") == "run it alone"
