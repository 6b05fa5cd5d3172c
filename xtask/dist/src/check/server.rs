//! A web server for repositories, on loopback.

use std::{path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result};
use pping_lab::Process;

/// How long to wait for it on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Serves a directory until the process is dropped. Returns its address as well.
pub(super) fn serve(directory: &Path) -> Result<(Process, String)> {
    let mut python = Command::new("python3");
    python.args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory"]).arg(directory).arg("0");
    let mut server = Process::spawn(python)?;
    server.wait_for_output("/) ...", PATIENCE)?;
    // `Serving HTTP on 127.0.0.1 port 41857 (http://127.0.0.1:41857/) ...`
    let said = server.stdout()?;
    let address = said.split(['(', ')']).nth(1).with_context(|| format!("no address in `{said}`"))?;
    Ok((server, address.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{Read as _, Write as _},
        net::TcpStream,
    };

    use super::*;

    #[test]
    fn the_files_of_a_directory_are_at_the_address() {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        fs::write(directory.path().join("Release"), "Suite: stable\n").expect("it can be written");
        let (_server, address) = serve(directory.path()).expect("it serves");
        let host = address.trim_start_matches("http://").trim_end_matches('/');
        let mut client = TcpStream::connect(host).expect("it listens");
        client.write_all(b"GET /Release HTTP/1.0\r\n\r\n").expect("it reads");
        let mut page = String::new();
        client.read_to_string(&mut page).expect("it answers");
        assert!(page.ends_with("\r\n\r\nSuite: stable\n"), "{page}");
    }
}
