//! The life of a Redis server.

use std::io::{Read, Write};
use std::net::TcpStream;

use fenced_tests::{Redis, RedisCluster, shared};

#[test]
fn the_shared_one_answers() {
    let url = shared::redis_url();
    let mut stream = TcpStream::connect(shared::address_in(&url)).unwrap();
    stream.write_all(b"PING\r\nQUIT\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "+PONG\r\n+OK\r\n");
}

#[test]
fn keeps_its_data_over_a_restart_until_wiped() {
    let mut server = Redis::start().unwrap();
    server.ask("SET key value").unwrap();
    server.restart().unwrap();
    assert!(server.ask("GET key").unwrap().contains("value"));
    server.wipe().unwrap();
    server.restart().unwrap();
    assert!(!server.ask("GET key").unwrap().contains("value"));
}

#[test]
fn a_replica_follows_and_can_be_promoted() {
    let mut master = Redis::start().unwrap();
    master.ask("SET key value").unwrap();
    let replica = master.replica().unwrap();
    assert!(replica.ask("GET key").unwrap().contains("value"));
    assert!(replica.ask("SET key other").unwrap().contains("READONLY"));
    master.stop().unwrap();
    replica.ask("REPLICAOF NO ONE").unwrap();
    assert!(replica.ask("SET key other").unwrap().starts_with("+OK"));
}

#[test]
fn a_cluster_spreads_its_keys() {
    let cluster = RedisCluster::start().unwrap();
    let (first, second) = ("SET {a} 1", "SET {b} 1");
    for command in [first, second] {
        let answers: Vec<_> = cluster
            .servers()
            .iter()
            .map(|server| server.ask(command).unwrap())
            .collect();
        assert_eq!(
            answers
                .iter()
                .filter(|answer| answer.starts_with("+OK"))
                .count(),
            1,
            "{answers:?}"
        );
    }
}
