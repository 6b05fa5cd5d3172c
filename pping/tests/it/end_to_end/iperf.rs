//! iperf3 between two hosts.

use std::{net::IpAddr, time::Duration};

use pping_lab::{Process, Topology};

use super::ok;

const PATIENCE: Duration = Duration::from_mins(1);

/// Runs iperf3 from the client to `server`, an address of a host, and returns once it has ended. Spaces separate the
/// arguments.
pub(super) fn iperf(topology: &Topology, server: IpAddr, arguments: &str) {
    let mut command = topology.server().command("iperf3");
    // Without --forceflush the awaited line would stay in a buffer, as the output is no terminal.
    command.args(["--server", "--one-off", "--forceflush"]);
    let mut listening = ok(Process::spawn(command));
    ok(listening.wait_for_output("Server listening", PATIENCE));
    let mut command = topology.client().command("iperf3");
    command.args(["--client", &server.to_string()]).args(arguments.split_whitespace());
    ok(pping_lab::run(&mut command));
    ok(listening.wait_timeout(PATIENCE));
}
