//! pping runs in a container from `deploy/container` and `deploy/kubernetes`, started as container engines do.

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
};

use pping_lab::{Namespace, Process, Topology};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    http::{Exposition, PORT, get},
    monitor::{ENDING, PPING, endless_ping, ok, repository, tool, topology, wait_until},
    web::passwords::USERS,
};
use crate::python::python_with;

const CAPABILITIES: [&str; 3] = ["CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"];

fn manifest() -> String {
    fs::read_to_string(repository("deploy/kubernetes/daemonset.yml")).unwrap()
}

/// The configuration file in the Kubernetes manifest.
fn configuration() -> String {
    let manifest = manifest();
    let (_, text) = manifest.split_once("  pping.toml: |\n").unwrap();
    let lines = text.lines().take_while(|line| line.starts_with("    "));
    lines.fold(String::new(), |text, line| text + line.trim_start() + "\n")
}

/// A container that runc runs in the network namespace of a host.
struct Container {
    directory: TempDir,
    process: Process,
}

impl Container {
    const NAME: &str = "pping";

    /// Starts the container as Kubernetes does: three capabilities, none of them ambient, a read-only file system and a
    /// system call filter. If `is_on_file`, the program's file has the capabilities too.
    fn start(host: &Namespace, user: u32, is_on_file: bool, environment: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("rootfs/usr/bin/pping");
        for directory_name in
            ["usr/bin", "usr/lib", "lib", "lib64", "proc", "sys", "etc/pping", "etc/pping-web"]
        {
            fs::create_dir_all(directory.path().join("rootfs").join(directory_name)).unwrap();
        }
        // Another process makes the copy. A child forked by this process meanwhile would inherit the file open for
        // writing, and the copy could not be run (ETXTBSY).
        assert!(tool("cp", &[PPING, program.to_str().unwrap()]).0);
        if is_on_file {
            let names = CAPABILITIES.join(",").to_lowercase() + "+ep";
            let (is_set, said) = tool("setcap", &[&names, program.to_str().unwrap()]);
            assert!(is_set, "{said}");
        }
        fs::write(directory.path().join("rootfs/etc/pping/pping.toml"), configuration()).unwrap();
        fs::write(directory.path().join("rootfs/etc/pping-web/web.yml"), USERS).unwrap();
        let bundle = bundle(&host.path(), user, environment);
        fs::write(directory.path().join("config.json"), bundle.to_string()).unwrap();
        let mut runc = runc(directory.path());
        runc.args(["run", "--bundle"]).arg(directory.path()).arg(Self::NAME).stdin(Stdio::null());
        Self { process: ok(Process::spawn(runc)), directory }
    }

    fn stop(mut self) -> String {
        let killed = runc(self.directory.path()).args(["kill", Self::NAME, "TERM"]).status().unwrap();
        assert!(killed.success());
        let status = ok(self.process.wait_timeout(ENDING));
        let stderr = ok(self.process.stderr());
        assert!(status.success(), "{status}: {stderr}");
        stderr
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let mut delete = runc(self.directory.path());
        // This fails if the container ended by itself, which is fine.
        delete.args(["delete", "--force", Self::NAME]).stderr(Stdio::null()).status().ok();
    }
}

fn runc(directory: &Path) -> Command {
    let mut runc = Command::new("runc");
    runc.arg("--root").arg(directory.join("state"));
    runc
}

/// The OCI bundle configuration that an engine passes to runc.
fn bundle(network: &Path, user: u32, environment: &[&str]) -> Value {
    let seccomp = fs::read_to_string(repository("deploy/container/seccomp.json")).unwrap();
    let seccomp: Value = serde_json::from_str(&seccomp).unwrap();
    let read_only = |path: &str| json!({"destination": path, "source": path, "type": "bind", "options": ["rbind", "ro", "nosuid", "nodev"]});
    let mut mounts =
        vec![json!({"destination": "/proc", "type": "proc", "source": "proc"}), read_only("/sys")];
    // The program under test is dynamically linked; the one in an image is static.
    mounts.extend(
        ["/lib", "/lib64", "/usr/lib"].into_iter().filter(|it| Path::new(it).exists()).map(read_only),
    );
    json!({
        "ociVersion": "1.0.2",
        "root": {"path": "rootfs", "readonly": true},
        "mounts": mounts,
        "process": {
            "user": {"uid": user, "gid": 65534},
            "cwd": "/",
            "args": ["/usr/bin/pping", "-v"],
            "env": environment,
            "noNewPrivileges": true,
            "capabilities": {"bounding": CAPABILITIES, "permitted": CAPABILITIES, "effective": CAPABILITIES},
        },
        "linux": {
            "namespaces": [{"type": "mount"}, {"type": "pid"}, {"type": "ipc"}, {"type": "network", "path": network}],
            "seccomp": seccomp,
        },
    })
}

/// Asks with the password of the Secret. Returns `None` unless the answer is 200.
fn ask(host: &Namespace, path: &str) -> Option<String> {
    let mut curl = host.command("curl");
    curl.args(["--silent", "--fail", "--user", "alice:correct horse"]);
    let output = curl.arg(format!("http://127.0.0.1:{PORT}{path}")).output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

fn is_ready(host: &Namespace) -> bool {
    ask(host, "/readyz").is_some()
}

/// The number of samples, if there are metrics.
fn samples(host: &Namespace) -> Option<f64> {
    Exposition(ask(host, "/metrics")?).sum("pping_samples_total", &[])
}

#[test]
fn container_works_as_root_or_with_file_capabilities() {
    let topology = topology();
    let router = topology.router();
    let listen = format!("PPING_LISTEN=127.0.0.1:{PORT}");
    let password = "PPING_WEB_CONFIG=/etc/pping-web/web.yml";
    let interface = format!("PPING_INTERFACE={}", Topology::WAN);
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    for (user, is_on_file) in [(0, false), (65_534, true)] {
        let mut container = Container::start(router, user, is_on_file, &[&listen, password, &interface]);
        wait_until("it is ready", || {
            let ended = ok(container.process.status());
            assert!(ended.is_none(), "as {user}: {}", ok(container.process.stderr()));
            is_ready(router)
        });
        wait_until("samples", || samples(router) > Some(3.0));
        // Nobody without the password sees the addresses of connections.
        for path in ["/api/v1/worst", "/metrics", "/", "/readyz"] {
            assert_eq!(get(router, PORT, path, "*/*").unwrap().status, 401, "{path}");
        }
        let said = container.stop();
        assert!(said.contains("lost: 0 events"), "{said}");
    }
}

#[test]
fn unprivileged_container_names_missing_capabilities() {
    let host = super::host::Host::new();
    let mut container = Container::start(&host.namespace, 65_534, false, &[]);
    let status = ok(container.process.wait_timeout(ENDING));
    let said = ok(container.process.stderr());
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("missing CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON"), "{said}");
}

#[test]
fn the_configuration_in_the_manifest_is_valid() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pping.toml");
    fs::write(&file, configuration()).unwrap();
    let (is_valid, said) = tool(PPING, &["config", "check", file.to_str().unwrap()]);
    assert!(is_valid, "{said}");
    let manifest = manifest();
    let lines = ["value: /etc/pping-web/web.yml\n", "mountPath: /etc/pping-web\n", "secretName: pping-web\n"];
    assert!(lines.iter().all(|line| manifest.contains(line)) && manifest.contains("PPING_WEB_CONFIG\n"));
    for name in CAPABILITIES.map(|name| name.trim_start_matches("CAP_")) {
        assert!(manifest.lines().any(|line| line.trim_start().starts_with("add: [") && line.contains(name)));
    }
    assert!(manifest.contains(&format!("image: localhost/pping:{}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn the_manifest_validates_against_the_schemas_of_kubernetes() {
    const VALIDATE: &str = "import kubernetes_validate as k, sys, yaml\n\
        for document in yaml.safe_load_all(open(sys.argv[1])):\n  \
          for version in ('1.27', k.latest_version()):\n    \
            k.validate(document, version, strict=True)\n    print(document['kind'], version)\n";
    let Some(python) = python_with("kubernetes_validate") else {
        eprintln!(
            "NOT TESTED: no python3 here has the package kubernetes-validate; `cargo xtask setup --tests` gets it"
        );
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("daemonset.yml");
    let validate = |manifest: &str| {
        fs::write(&file, manifest).unwrap();
        tool(&python, &["-c", VALIDATE, file.to_str().unwrap()])
    };
    let (is_valid, said) = validate(&manifest());
    assert!(is_valid, "{said}");
    assert_eq!(said.lines().filter(|line| line.starts_with("DaemonSet ")).count(), 2, "{said}");
    assert!(!validate(&manifest().replace("hostNetwork: true", "hostNetworks: true")).0);
}
