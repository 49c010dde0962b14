use std::time::Duration;

use crate::process::Process;
use crate::shop::{PATIENCE, SKU, Shop};

#[test]
fn processes_are_served_in_the_order_they_came() {
    let shop = Shop::new();
    let mut processes: Vec<_> = (0..5).map(|_| shop.process(PATIENCE)).collect();
    let mut places = 0;
    // Not in the order in which they were started.
    for index in [3, 0, 4, 1, 2] {
        processes[index].tell(&format!("enter {SKU}"));
        places += 1;
        shop.wait_for_contenders(places);
    }
    let mut last = 0;
    for index in [3, 0, 4, 1, 2] {
        let token = processes[index].hear_token();
        assert_eq!(token, last + 1);
        last = token;
        assert_eq!(shop.contenders(), 6 - token);
        assert_eq!(processes[index].ask("leave"), "left");
    }
    assert_eq!(shop.contenders(), 0);
}

#[test]
fn twins_of_two_processes_have_one_effect() {
    let shop = Shop::new();
    let mut twins = [shop.process(PATIENCE), shop.process(PATIENCE)];
    for round in 1..=20 {
        for twin in &mut twins {
            twin.tell(&format!("write {SKU} 7 order-{round}"));
        }
        let mut said = twins.each_ref().map(Process::hear);
        said.sort();
        assert_eq!(said, ["applied", "replayed"]);
        assert_eq!(shop.count(), round);
    }
}

#[test]
fn a_waiter_that_is_stopped_loses_its_place_and_queues_again() {
    let shop = Shop::new();
    let lease = Duration::from_millis(500);
    let mut holder = shop.process(PATIENCE);
    holder.tell(&format!("enter {SKU}"));
    let first = holder.hear_token();
    let mut stopped = shop.process(lease);
    stopped.tell(&format!("enter {SKU}"));
    shop.wait_for_contenders(2);
    stopped.stop();
    let mut next = shop.process(lease);
    next.tell(&format!("enter {SKU}"));
    shop.wait_for_contenders(3);
    assert_eq!(holder.ask("leave"), "left");
    assert_eq!(next.hear_token(), first + 2);
    stopped.go_on();
    assert_eq!(next.ask("add order-1"), "applied");
    assert_eq!(next.ask("leave"), "left");
    assert!(stopped.hear_token() > first + 2);
    assert_eq!(stopped.ask("add order-2"), "applied");
    assert_eq!(stopped.ask("leave"), "left");
}
