//! The life of a Redis server.

use std::io::{Read, Write};
use std::net::TcpStream;

use fenced_tests::{Redis, shared};

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
