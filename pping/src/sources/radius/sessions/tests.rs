use super::*;

/// Sessions, what they say, and their time.
struct Server {
    sessions: Sessions,
    named: HashMap<IpNet, String>,
    now: Instant,
}

impl Server {
    fn new() -> Self {
        Self::with_expiry(None)
    }

    fn with_expiry(expire: Option<Duration>) -> Self {
        Self { sessions: Sessions::new(expire), named: HashMap::new(), now: Instant::now() + LONGEST }
    }

    fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Set(prefix, name) => {
                    self.named.insert(prefix, name.label.to_string());
                }
                Change::Unset(prefix) => {
                    self.named.remove(&prefix);
                }
            }
        }
    }

    fn take(&mut self, report: Report) -> Outcome {
        let mut changes = Vec::new();
        let outcome = self.sessions.take(report, self.now, &mut changes);
        self.apply(changes);
        outcome
    }

    fn after(&mut self, seconds: u64) -> &mut Self {
        self.now += Duration::from_secs(seconds);
        let mut changes = Vec::new();
        self.sessions.expire(self.now, &mut changes);
        self.apply(changes);
        self
    }

    fn adopt(&mut self, names: &[(&str, &str, &str)]) {
        let name = |(prefix, label, nas): &(&str, &str, &str)| {
            let columns = Some(vec![(NAS.into(), (*nas).into())]);
            (prefix.parse().unwrap(), Name { label: (*label).into(), columns })
        };
        let names: Vec<_> = names.iter().map(name).collect();
        let mut changes: Vec<_> =
            names.iter().map(|(prefix, name)| Change::Set(*prefix, name.clone())).collect();
        self.sessions.adopt(names, self.now, &mut changes);
        self.apply(changes);
    }

    /// The prefixes that have a name, as text.
    #[track_caller]
    fn expect(&self, expected: &[(&str, &str)]) {
        let mut named: Vec<_> =
            self.named.iter().map(|(prefix, name)| (prefix.to_string(), &**name)).collect();
        named.sort_unstable();
        let named: Vec<_> = named.iter().map(|(prefix, name)| (&**prefix, *name)).collect();
        assert_eq!(named, expected);
    }
}

fn nas_of(entry: Option<&str>, name: &str) -> Nas {
    Nas { entry: entry.map(|entry| entry.parse().unwrap()), name: name.into() }
}

fn report(status: Status, session: &str, label: &str, prefixes: &[&str]) -> Report {
    let kind = |prefix: &IpNet| match prefix {
        IpNet::V4(_) => Kind::Address,
        IpNet::V6(_) => Kind::DelegatedPrefix,
    };
    let prefixes =
        prefixes.iter().map(|prefix| prefix.parse().unwrap()).map(|prefix| (kind(&prefix), prefix));
    Report {
        status,
        nas: nas_of(None, "bng1"),
        session: session.as_bytes().into(),
        label: Some(label.into()).filter(|label: &Arc<str>| !label.is_empty()),
        prefixes: prefixes.collect(),
        delay: Duration::ZERO,
        age: Duration::ZERO,
        interval: None,
        unread_route: None,
    }
}

fn start(session: &str, label: &str, prefixes: &[&str]) -> Report {
    report(Status::Start, session, label, prefixes)
}

fn interim(session: &str, label: &str, prefixes: &[&str]) -> Report {
    report(Status::Interim, session, label, prefixes)
}

fn stop(session: &str, label: &str, prefixes: &[&str]) -> Report {
    report(Status::Stop, session, label, prefixes)
}

const A: &str = "100.64.0.1/32";
const B: &str = "100.64.0.2/32";
const V6: &str = "2001:db8:1::/56";

#[test]
fn a_session_has_its_prefixes_until_it_stops() {
    let mut nas = Server::new();
    nas.take(start("1", "alice", &[A, V6]));
    nas.expect(&[(A, "alice"), (V6, "alice")]);
    // Twice is as once.
    nas.take(start("1", "alice", &[A, V6]));
    nas.take(interim("1", "alice", &[A]));
    nas.expect(&[(A, "alice"), (V6, "alice")]);
    nas.take(stop("1", "alice", &[A]));
    nas.expect(&[]);
    nas.take(stop("1", "alice", &[A]));
    nas.expect(&[]);
    assert_eq!(nas.sessions.owners.len() + nas.sessions.known.len(), 0);
}

#[test]
fn an_update_moves_a_session_to_another_address() {
    let mut nas = Server::new();
    nas.take(start("1", "alice", &[]));
    nas.expect(&[]);
    nas.take(interim("1", "alice", &[A, V6]));
    nas.take(interim("1", "", &[B]));
    nas.expect(&[(B, "alice"), (V6, "alice")]);
    nas.take(start("1", "alice", &[A]));
    nas.expect(&[(A, "alice"), (V6, "alice")]);
}

#[test]
fn the_later_session_has_the_address_and_keeps_it() {
    let mut nas = Server::new();
    nas.take(start("1", "alice", &[A]));
    nas.after(1).take(start("2", "bob", &[A]));
    nas.expect(&[(A, "bob")]);
    // The earlier session still reports, and then ends.
    nas.after(1).take(interim("1", "alice", &[A]));
    nas.expect(&[(A, "bob")]);
    nas.after(1).take(stop("1", "alice", &[A]));
    nas.expect(&[(A, "bob")]);
    nas.after(1).take(stop("2", "bob", &[A]));
    nas.expect(&[]);
}

#[test]
fn a_session_that_lost_its_address_may_get_it_back() {
    let mut nas = Server::new();
    nas.take(start("1", "alice", &[A]));
    nas.after(1).take(start("2", "bob", &[A]));
    nas.after(1).take(stop("2", "bob", &[A]));
    nas.expect(&[]);
    nas.after(1).take(interim("1", "alice", &[A]));
    nas.expect(&[(A, "alice")]);
}

#[test]
fn the_age_of_a_session_tells_which_one_is_later() {
    let mut nas = Server::new();
    let aged = |session, label, seconds| {
        let mut report = interim(session, label, &[A]);
        report.age = Duration::from_secs(seconds);
        report
    };
    nas.take(aged("2", "bob", 60));
    // It is unknown, but it began an hour before.
    nas.after(1).take(aged("1", "alice", 3600));
    nas.expect(&[(A, "bob")]);
    nas.after(1).take(aged("3", "carol", 10));
    nas.expect(&[(A, "carol")]);
}

#[test]
fn a_number_that_is_used_again_is_another_session() {
    let mut nas = Server::new();
    nas.take(start("1", "alice", &[A, V6]));
    nas.after(1).take(start("1", "bob", &[B]));
    nas.expect(&[(B, "bob")]);
    // The end of the first one comes late.
    nas.after(1).take(stop("1", "alice", &[A]));
    nas.expect(&[(B, "bob")]);
    nas.after(1).take(stop("1", "", &[]));
    nas.expect(&[]);
    nas.after(1).take(start("1", "bob", &[A]));
    nas.expect(&[(A, "bob")]);
}

#[test]
fn a_report_that_its_stop_has_overtaken_changes_nothing() {
    let mut nas = Server::new();
    nas.take(start("1", "alice", &[A]));
    nas.after(10).take(stop("1", "alice", &[A]));
    let late = Report { delay: Duration::from_secs(11), ..interim("1", "alice", &[A]) };
    nas.after(5).take(late);
    nas.expect(&[]);
    // Others with the same number of session are not affected.
    nas.take(start("1", "alice", &[B]));
    nas.expect(&[(B, "alice")]);
    // The stop of the one before comes once more, after the start of this one.
    nas.after(5).take(Report { delay: Duration::from_secs(10), ..stop("1", "alice", &[A]) });
    nas.expect(&[(B, "alice")]);
}

#[test]
fn a_nas_that_begins_anew_has_no_sessions() {
    let mut nas = Server::new();
    nas.take(start("1", "alice", &[A]));
    nas.take(Report { nas: nas_of(None, "bng2"), ..start("1", "bob", &[B]) });
    nas.take(report(Status::NoSessions, "", "", &[]));
    nas.expect(&[(B, "bob")]);
}

#[test]
fn a_client_with_another_secret_ends_no_sessions_of_a_nas() {
    let mut nas = Server::new();
    let of = |client: &str, report: Report| Report { nas: nas_of(Some(client), "bng1"), ..report };
    nas.adopt(&[(V6, "carol", "bng1")]);
    nas.take(of("192.0.2.2/32", start("1", "alice", &[A])));
    for client in ["192.0.2.3/32", "192.0.2.0/24"] {
        nas.after(1).take(of(client, stop("1", "alice", &[A])));
        nas.take(of(client, report(Status::NoSessions, "", "", &[])));
        nas.expect(&[(A, "alice"), (V6, "carol")]);
    }
    nas.take(stop("1", "alice", &[A]));
    nas.expect(&[(A, "alice"), (V6, "carol")]);
    nas.take(of("192.0.2.2/32", report(Status::NoSessions, "", "", &[])));
    nas.expect(&[(V6, "carol")]);
}

#[test]
fn the_end_of_a_nas_ends_only_what_has_reported_since_the_start() {
    let mut nas = Server::new();
    nas.adopt(&[(A, "alice", "bng1"), (B, "bob", "bng1"), (V6, "carol", "bng1")]);
    nas.take(interim("1", "alice", &[A]));
    nas.take(report(Status::NoSessions, "", "", &[]));
    nas.expect(&[(B, "bob"), (V6, "carol")]);
    nas.take(stop("2", "bob", &[B]));
    nas.expect(&[(V6, "carol")]);
}

#[test]
fn a_silent_session_ends_after_three_intervals() {
    let mut nas = Server::new();
    nas.take(start("1", "alice", &[A]));
    nas.take(start("2", "bob", &[B]));
    for _ in 0..3 {
        nas.after(300).take(interim("1", "alice", &[A]));
    }
    nas.after(900).expect(&[(A, "alice"), (B, "bob")]);
    nas.after(1).expect(&[(B, "bob")]);
    // One that never reports again stays for a day.
    nas.after(24 * 3600).expect(&[]);
}

#[test]
fn the_nas_may_say_how_often_it_reports() {
    let mut nas = Server::new();
    nas.take(Report { interval: Some(Duration::from_mins(1)), ..start("1", "alice", &[A]) });
    nas.after(600).expect(&[(A, "alice")]);
    nas.after(1).expect(&[]);
    let mut nas = Server::with_expiry(Some(Duration::from_secs(30)));
    nas.take(start("1", "alice", &[A]));
    nas.after(30).expect(&[(A, "alice")]);
    nas.after(1).expect(&[]);
}

#[test]
fn what_an_earlier_run_said_stays_until_it_is_known_better() {
    let mut nas = Server::new();
    let earlier = [(A, "alice", "bng1"), (B, "bob", "bng1"), (V6, "carol", "bng2")];
    nas.adopt(&earlier);
    nas.expect(&[(A, "alice"), (B, "bob"), (V6, "carol")]);
    // The end of a session that had the address before that.
    nas.take(stop("0", "zoe", &[A]));
    nas.take(stop("1", "alice", &[A]));
    nas.expect(&[(B, "bob"), (V6, "carol")]);
    nas.take(interim("2", "bob", &[B]));
    nas.take(stop("2", "bob", &[]));
    nas.expect(&[(V6, "carol")]);
    nas.adopt(&earlier);
    nas.after(24 * 3600).expect(&[]);
}

#[test]
fn ends_count_that_come_before_the_names_of_the_earlier_run() {
    let mut nas = Server::new();
    nas.take(stop("1", "alice", &[A]));
    nas.take(stop("2", "zoe", &[B]));
    nas.take(stop("3", "", &[V6]));
    nas.adopt(&[(A, "alice", "bng1"), (B, "bob", "bng1"), (V6, "carol", "bng2")]);
    nas.expect(&[(B, "bob")]);
}

#[test]
fn a_session_without_a_name_or_with_too_many_prefixes_is_said() {
    let mut nas = Server::new();
    assert_eq!(nas.take(start("1", "", &[A])), Outcome::Unnamed);
    nas.expect(&[]);
    assert_eq!(nas.take(interim("1", "alice", &[A])), Outcome::Done);
    let many: Vec<String> = (0..20).map(|it| format!("10.0.0.{it}/32")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(nas.take(start("2", "bob", &many)), Outcome::NoRoom);
    assert_eq!(nas.named.len(), 1 + MAX_PREFIXES);
}

#[test]
fn owners_and_sessions_agree_whatever_comes() {
    let mut nas = Server::new();
    // A simple generator, the same in every run.
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    let statuses = [Status::Start, Status::Interim, Status::Stop, Status::NoSessions];
    for _ in 0..20_000 {
        let status = statuses[[0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3][random(11) as usize]];
        let prefix = format!("10.0.0.{}/32", random(6));
        let label = ["alice", "bob", "carol", ""][random(4) as usize];
        let mut report = report(status, &random(5).to_string(), label, &[&prefix]);
        report.delay = Duration::from_secs(random(3));
        nas.after(random(2)).take(report);
        let Sessions { known: sessions, owners, .. } = &nas.sessions;
        let held: usize = sessions.values().map(|session| session.prefixes.len()).sum();
        assert_eq!(held, owners.len());
        assert_eq!(nas.named.len(), owners.len());
        for (prefix, key) in owners {
            assert_eq!(nas.named[prefix], *sessions[key].label);
            assert!(sessions[key].prefixes.iter().any(|(_, held)| held == prefix));
        }
    }
}
