//! The programs that the tests start.

use super::Missing;
use crate::environment;

const TOOLS: [Missing; 35] = [
    tool("ip", &["iproute2"]),
    tool("tc", &["iproute2"]),
    tool("ping", &["iputils-ping"]),
    tool("tshark", &["tshark"]),
    tool("tcpdump", &["tcpdump"]),
    tool("iperf3", &["iperf3"]),
    tool("dnsmasq", &["dnsmasq-base"]),
    tool("kea-dhcp4", &["kea-dhcp4-server"]),
    tool("kea-dhcp6", &["kea-dhcp6-server"]),
    tool("dhcpd", &["isc-dhcp-server"]),
    tool("dhclient", &["isc-dhcp-client"]),
    tool("busybox", &["busybox"]),
    tool("radclient", &["freeradius-utils"]),
    tool("ethtool", &["ethtool"]),
    tool("bpftool", &["bpftool"]),
    tool("prometheus", &["prometheus"]),
    tool("promtool", &["prometheus"]),
    tool("victoria-metrics", &["victoria-metrics"]),
    tool("systemd-analyze", &["systemd"]),
    tool("curl", &["curl"]),
    tool("faketime", &["faketime"]),
    tool("jq", &["jq"]),
    tool("tmux", &["tmux"]),
    tool("chromium", &["chromium"]),
    tool("chromedriver", &["chromium-driver"]),
    tool("python3", &["python3"]),
    tool("logrotate", &["logrotate"]),
    tool("runc", &["runc"]),
    tool("strace", &["strace"]),
    tool("valgrind", &["valgrind"]),
    tool("sysctl", &["procps"]),
    tool("man", &["man-db"]),
    tool("groff", &["groff-base"]),
    tool("openssl", &["openssl"]),
    tool("zabbix_agentd", &["zabbix-agent"]),
];

const fn tool(program: &'static str, packages: &'static [&'static str]) -> Missing {
    Missing { what: program, packages, elsewhere: "the package your distribution has it in" }
}

/// Returns the programs that are not on `PATH`.
pub(super) fn missing() -> Vec<Missing> {
    TOOLS.into_iter().filter(|tool| environment::find_program(tool.what).is_none()).collect()
}

/// Returns a line about each program that is there.
pub(super) fn found() -> Vec<String> {
    let line = |tool: &Missing| {
        environment::find_program(tool.what).map(|file| format!("{}: {}", tool.what, file.display()))
    };
    TOOLS.iter().filter_map(line).collect()
}
