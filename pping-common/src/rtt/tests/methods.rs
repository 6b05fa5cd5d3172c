//! Which methods are wanted.

use crate::rtt::{Method, Methods};

#[test]
fn numbers_are_what_others_count_by() {
    let numbers = Method::ALL.map(|method| method as u8);
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!((Method::TcpTs as u8, Method::IcmpEcho as u8, Method::TcpSeq as u8), (0, 1, 2));
    assert_eq!((Method::TcpHandshake as u8, Method::Dns as u8), (3, 4));
    assert_eq!((Method::QuicSpin as u8, Method::QuicHandshake as u8), (5, 6));
    assert!(Method::ALL.len() <= Method::COUNT);
}

#[test]
fn all_are_wanted_unless_some_are_not() {
    for method in Method::ALL {
        assert!(Methods::ALL.has(method) && !Methods::NONE.has(method));
        let (without, only) = (Methods::ALL.without(method), Methods::NONE.and(method));
        for other in Method::ALL {
            assert_eq!(without.has(other), other != method);
            assert_eq!(only.has(other), other == method);
        }
        assert_eq!(without.and(method), Methods::ALL);
        assert_eq!(only.without(method), Methods::NONE);
    }
}

#[test]
fn each_serves_one_protocol() {
    for method in Method::ALL {
        let only = Methods::NONE.and(method);
        let is_tcp = matches!(method, Method::TcpTs | Method::TcpSeq | Method::TcpHandshake);
        assert_eq!(only.has_tcp(), is_tcp, "{method:?}");
        let is_quic = matches!(method, Method::QuicSpin | Method::QuicHandshake);
        assert_eq!(only.has_quic(), is_quic, "{method:?}");
    }
}

#[test]
fn sequence_numbers_are_for_all_flows_only_when_asked_for() {
    assert!(!Methods::ALL.has_seq_always() && !Methods::ALL.has_both());
    let seq = Methods::NONE.and_seq_always();
    assert!(seq.has(Method::TcpSeq) && seq.has_seq_always() && !seq.has_both());
    let both = seq.and(Method::TcpTs);
    assert!(both.has_both() && both.has_seq_always());
    assert_eq!(both.without(Method::TcpTs), seq);
    // No method is mistaken for it.
    for method in Method::ALL {
        assert!(!Methods::NONE.and(method).has_seq_always());
    }
}
