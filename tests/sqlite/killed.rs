use std::time::Duration;

use crate::shop::{PATIENCE, SKU, Shop, number};

const LEASE: Duration = Duration::from_millis(500);

#[test]
fn a_killed_holder_and_a_killed_waiter_hold_up_nobody_for_long() {
    let shop = Shop::new();
    let [mut holder, mut waiter, mut last] = [(); 3].map(|()| shop.process(LEASE));
    holder.tell(&format!("enter {SKU}"));
    let first = holder.hear_token();
    waiter.tell(&format!("enter {SKU}"));
    shop.wait_for_contenders(2);
    last.tell(&format!("enter {SKU}"));
    shop.wait_for_contenders(3);
    waiter.kill();
    holder.kill();
    assert_eq!(last.hear_token(), first + 2);
    assert_eq!(shop.contenders(), 1);
    assert_eq!(last.ask("leave"), "left");
    assert_eq!(shop.contenders(), 0);
}

#[test]
fn a_death_inside_a_transaction_leaves_nothing_of_it() {
    let shop = Shop::new();
    let mut first = shop.process(LEASE);
    first.tell(&format!("enter {SKU}"));
    first.hear_token();
    assert_eq!(first.ask("add order-1"), "applied");
    assert_eq!(first.ask("die order-2"), "inside");
    assert!(!first.wait());
    let mut second = shop.process(LEASE);
    second.tell(&format!("enter {SKU}"));
    second.hear_token();
    assert_eq!(second.ask("add order-1"), "replayed");
    assert_eq!(second.ask("add order-2"), "applied");
    assert_eq!(shop.count(), 2);
}

#[test]
fn a_death_at_any_point_loses_no_acknowledged_write() {
    let shop = Shop::new();
    let mut acknowledged = 0;
    for round in 0..12_u64 {
        let mut process = shop.process(LEASE);
        process.tell(&format!("enter {SKU}"));
        let token = process.hear_token();
        process.tell(&format!("pour round-{round}"));
        process.hear();
        std::thread::sleep(Duration::from_micros(round * 977));
        process.kill();
        let last = process
            .last_words()
            .last()
            .map_or(1, |said| said.parse().unwrap());
        let data = shop.data();
        let kept = "SELECT count(*) FROM fenced_request WHERE id LIKE ?1";
        let kept = number(&data, kept, [format!("round-{round}-%")]);
        assert!(
            kept == last || kept == last + 1,
            "{kept} kept, {last} acknowledged"
        );
        acknowledged += kept;
        assert_eq!(shop.count(), acknowledged, "data and requests agree");
        let fence = "SELECT token FROM fenced_fence WHERE resource = ?1";
        assert_eq!(number(&data, fence, [SKU]), token);
    }
}

#[test]
fn a_folder_left_by_the_dead_is_usable() {
    let shop = Shop::new();
    for _ in 0..3 {
        let mut process = shop.process(PATIENCE);
        process.tell(&format!("enter {SKU}"));
        process.hear_token();
        process.kill();
        // As after a restart of the machine.
        let forget = "UPDATE machine SET boot = 'another boot'";
        assert_eq!(shop.locks().execute(forget, []), Ok(1));
    }
    let mut process = shop.process(PATIENCE);
    process.tell(&format!("enter {SKU}"));
    assert_eq!(process.hear_token(), 4);
    assert_eq!(shop.contenders(), 1);
}
