use std::{fs, io::Write as _};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::*;

/// A lease file that changes, and the names that follow from it.
struct Server {
    directory: TempDir,
    file: LeaseFile,
    named: HashMap<String, String>,
    complaints: Complaints,
    now: u64,
}

const NAME: &str = "leases";

impl Server {
    fn new(make: impl FnOnce(PathBuf, LabelBy) -> LeaseFile, before: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in before {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let file = make(directory.path().join(NAME), LabelBy::Hostname);
        let complaints = Complaints::default();
        let mut server = Self { directory, file, named: HashMap::new(), complaints, now: 1_000 };
        let mut changes = Vec::new();
        server.file.read_earlier(server.now, &mut changes, &mut server.complaints);
        server.apply(changes);
        server
    }

    fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Set(prefix, name) => {
                    self.named.insert(prefix.addr().to_string(), name.label.to_string());
                }
                Change::Unset(prefix) => {
                    self.named.remove(&prefix.addr().to_string());
                }
            }
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join(NAME)
    }

    fn write(&self, text: &str) {
        fs::write(self.path(), text).unwrap();
    }

    fn append(&self, text: &str) {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(self.path()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn rename_to(&self, name: &str) {
        fs::rename(self.path(), self.directory.path().join(name)).unwrap();
    }

    #[track_caller]
    fn expect(&mut self, expected: &[(&str, &str)]) {
        // A file that is written again is read at the second look.
        for _ in 0..2 {
            let mut changes = Vec::new();
            self.file.poll(self.now, &mut changes, &mut self.complaints).unwrap();
            self.apply(changes);
        }
        let mut named: Vec<_> = self.named.iter().map(|(prefix, name)| (&**prefix, &**name)).collect();
        named.sort_unstable();
        assert_eq!(named, expected);
    }
}

const KEA: &str = "address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context\n";

fn kea(address: &str, hostname: &str, expire: u64) -> String {
    format!("{address},02:00:00:00:00:01,,100,{expire},1,0,0,{hostname},0,\n")
}

#[test]
fn leases_of_kea_are_followed_across_its_files() {
    let earlier = [
        ("leases.2", format!("{KEA}{}{}", kea("10.0.0.1", "a", 2_000), kea("10.0.0.2", "b", 2_000))),
        ("leases.1", format!("{KEA}{}", kea("10.0.0.2", "c", 2_000))),
        (NAME, format!("{KEA}{}", kea("10.0.0.3", "d", 1_500))),
    ];
    let earlier: Vec<_> = earlier.iter().map(|(name, text)| (*name, &**text)).collect();
    let mut server = Server::new(LeaseFile::kea, &earlier);
    server.expect(&[("10.0.0.1", "a"), ("10.0.0.2", "c"), ("10.0.0.3", "d")]);
    // A renewal, half a line, and the end of a lease.
    server.append(&kea("10.0.0.3", "d", 3_000));
    server.append("10.0.0.4,02:00:00:00:00:04,,100,2000,1,0,0,");
    server.now = 1_600;
    server.expect(&[("10.0.0.1", "a"), ("10.0.0.2", "c"), ("10.0.0.3", "d")]);
    server.append("e,0,\n10.0.0.1,02:00:00:00:00:01,,0,2000,1,0,0,a,0,\n");
    server.expect(&[("10.0.0.2", "c"), ("10.0.0.3", "d"), ("10.0.0.4", "e")]);
    // Kea cleans up: the file is moved away, and another one begins without the leases of before.
    server.rename_to("leases.1");
    server.expect(&[("10.0.0.2", "c"), ("10.0.0.3", "d"), ("10.0.0.4", "e")]);
    server.write(&format!("{KEA}{}", kea("10.0.0.2", "f", 4_000)));
    server.expect(&[("10.0.0.2", "f"), ("10.0.0.3", "d"), ("10.0.0.4", "e")]);
    server.now = 3_000;
    server.expect(&[("10.0.0.2", "f")]);
    assert_eq!(server.complaints.summary(), "");
}

#[test]
fn a_finished_clean_up_of_kea_stands_for_its_parts() {
    let completed = format!("{KEA}{}", kea("10.0.0.1", "new", 2_000));
    let part = format!("{KEA}{}", kea("10.0.0.1", "old", 2_000));
    let files = [("leases.completed", &*completed), ("leases.2", &*part), (NAME, KEA)];
    Server::new(LeaseFile::kea, &files).expect(&[("10.0.0.1", "new")]);
}

#[test]
fn a_pipe_in_the_place_of_a_file_that_kea_moved_away_is_left_out() {
    let part = format!("{KEA}{}", kea("10.0.0.1", "a", 2_000));
    for pipes in [&["leases.completed", "leases.1"][..], &["leases.completed"], &["leases.1"]] {
        let directory = tempfile::tempdir().unwrap();
        for pipe in pipes {
            mknodat(CWD, directory.path().join(pipe), FileType::Fifo, Mode::RWXU, 0).unwrap();
        }
        fs::write(directory.path().join("leases.2"), &part).unwrap();
        let mut file = LeaseFile::kea(directory.path().join(NAME), LabelBy::Hostname);
        let (mut changes, mut complaints) = (Vec::new(), Complaints::default());
        file.read_earlier(1_000, &mut changes, &mut complaints);
        assert_eq!(changes.len(), 1);
        assert_eq!(complaints.summary(), format!(", {} times that a file could not be read", pipes.len()));
    }
}

fn isc(address: &str, hostname: &str, ends: u64) -> String {
    format!(
        "lease {address} {{\n  ends epoch {ends};\n  binding state active;\n  client-hostname \"{hostname}\";\n}}\n"
    )
}

#[test]
fn leases_of_isc_are_followed_across_its_files() {
    let mut server = Server::new(LeaseFile::isc, &[(NAME, &isc("10.0.0.1", "a", 2_000))]);
    server.expect(&[("10.0.0.1", "a")]);
    server.append(&isc("10.0.0.2", "b", 2_000));
    let next = isc("10.0.0.3", "c", 2_000);
    server.append(&next[..30]);
    server.expect(&[("10.0.0.1", "a"), ("10.0.0.2", "b")]);
    server.append(&next[30..]);
    server.expect(&[("10.0.0.1", "a"), ("10.0.0.2", "b"), ("10.0.0.3", "c")]);
    // The new file has all leases that there are.
    server.append("lease 10.0.0.2 { binding state free; }\n");
    server.rename_to("leases~");
    server.write(&(isc("10.0.0.1", "a", 2_000) + &isc("10.0.0.4", "d", 2_000)));
    server.expect(&[("10.0.0.1", "a"), ("10.0.0.4", "d")]);
    server.now = 2_000;
    server.expect(&[]);
    // The clock was wrong, and is put right.
    server.now = 1_999;
    server.expect(&[("10.0.0.1", "a"), ("10.0.0.4", "d")]);
    server.now = 2_000 + KEEP_ENDED;
    server.expect(&[]);
    assert_eq!(server.file.leases.held.len(), 0);
    assert_eq!(server.complaints.summary(), "");
}

#[test]
fn leases_of_dnsmasq_are_those_of_the_file() {
    let line = |address: &str, hostname: &str| format!("0 02:00:00:00:00:01 {address} {hostname} *\n");
    let mut server = Server::new(LeaseFile::dnsmasq, &[(NAME, &line("10.0.0.1", "a"))]);
    server.expect(&[("10.0.0.1", "a")]);
    server.write(&(line("10.0.0.1", "b") + &line("10.0.0.2", "*")));
    server.expect(&[("10.0.0.1", "b"), ("10.0.0.2", "02:00:00:00:00:01")]);
    // It is being written: the address is 10.0.0.12, once all is there.
    server.write(&(line("10.0.0.1", "c") + "0 02:00:00:00:00:01 10.0.0.1 d"));
    server.expect(&[("10.0.0.1", "c"), ("10.0.0.2", "02:00:00:00:00:01")]);
    server.write(&(line("10.0.0.1", "c") + &line("10.0.0.12", "d")));
    server.expect(&[("10.0.0.1", "c"), ("10.0.0.12", "d")]);
    server.write("");
    server.expect(&[]);
}

#[test]
fn a_new_file_of_another_kind_ends_no_lease() {
    let kea = format!("{KEA}{}", kea("10.0.0.1", "a", 2_000));
    let isc = isc("10.0.0.1", "a", 2_000);
    for (make, right, wrong) in
        [(LeaseFile::kea as fn(PathBuf, LabelBy) -> LeaseFile, &kea, &isc), (LeaseFile::isc, &isc, &kea)]
    {
        let mut server = Server::new(make, &[(NAME, right)]);
        server.expect(&[("10.0.0.1", "a")]);
        server.rename_to("leases~");
        server.write(wrong);
        let poll = |server: &mut Server| {
            let mut changes = Vec::new();
            let read = server.file.poll(server.now, &mut changes, &mut server.complaints);
            (read.map_err(|error| error.to_string()), changes)
        };
        let (read, changes) = poll(&mut server);
        assert!(read.unwrap_err().starts_with("this is no lease file of "));
        assert_eq!(changes, []);
        // It ends in time all the same, and a file of the right kind is read again.
        server.now = 2_000;
        assert_eq!(poll(&mut server).1, [Change::Unset("10.0.0.1/32".parse().unwrap())]);
        server.rename_to("wrong");
        server.write(&right.replace("2000", "3000"));
        server.expect(&[("10.0.0.1", "a")]);
    }
}

#[test]
fn an_empty_file_of_isc_ends_leases_once_the_server_has_written_to_it() {
    let mut server = Server::new(LeaseFile::isc, &[(NAME, &isc("10.0.0.1", "a", 2_000))]);
    server.expect(&[("10.0.0.1", "a")]);
    server.write("# The format of this file is documented\n");
    server.expect(&[("10.0.0.1", "a")]);
    server.append("authoring-byte-order little-endian;\n");
    server.expect(&[]);
}

#[test]
fn what_cannot_be_read_is_left_out_and_counted() {
    let mut server = Server::new(LeaseFile::kea, &[(NAME, KEA)]);
    let mut line = kea("10.0.0.1", "XX", 2_000).into_bytes();
    let at = line.iter().position(|&byte| byte == b'X').unwrap();
    line[at] = 0xff;
    fs::write(server.path(), [KEA.as_bytes(), b"10.0.0.300,\xff\n", &line].concat()).unwrap();
    server.expect(&[("10.0.0.1", "?X")]);
    server.append(&"x".repeat(2 * MAX_ENTRY));
    server.append(&format!("\n{}", kea("10.0.0.2", "b", 2_000)));
    server.expect(&[("10.0.0.1", "?X"), ("10.0.0.2", "b")]);
    assert!(server.complaints.summary().contains("unreadable"), "{}", server.complaints.summary());
}
