use std::time::Duration;

use crate::shop::{PATIENCE, SKU, Shop};

const LEASE: Duration = Duration::from_millis(600);

#[test]
fn a_stopped_holder_is_passed_and_refused() {
    let shop = Shop::new();
    let [mut first, mut second] = [shop.process(LEASE), shop.process(LEASE)];
    first.tell(&format!("enter {SKU}"));
    let older = first.hear_token();
    assert_eq!(first.ask("add order-1"), "applied");
    second.tell(&format!("enter {SKU}"));
    shop.wait_for_contenders(2);
    first.stop();
    let newer = second.hear_token();
    assert!(newer > older);
    assert_eq!(second.ask("add order-2"), "applied");
    first.go_on();
    // By its own guard, before anything is sent, and by the file, if it were sent.
    assert_eq!(first.ask("add order-3"), "lost DeadlinePassed");
    first.tell("leave");
    assert_eq!(first.hear(), "left");
    let late = first.ask(&format!("write {SKU} {older} order-3"));
    assert_eq!(late, format!("stale {older} {newer}"));
    assert_eq!(second.ask("add order-4"), "applied");
    assert_eq!(second.ask("leave"), "left");
    assert_eq!(shop.count(), 3);
    shop.wait_for_contenders(0);
}

#[test]
fn a_writer_stopped_in_a_transaction_holds_up_the_data_but_no_lease() {
    let shop = Shop::new();
    let [mut writer, mut next, mut other] = [(); 3].map(|()| shop.process(LEASE));
    other.tell("enter /locks/other");
    other.hear_token();
    assert_eq!(other.ask("add other-1"), "applied");
    writer.tell(&format!("enter {SKU}"));
    writer.hear_token();
    assert_eq!(writer.ask("stop order-1"), "inside");
    writer.wait_until_stopped();
    next.tell(&format!("enter {SKU}"));
    next.hear_token();
    let busy = if cfg!(target_os = "linux") {
        format!("busy [{}]", writer.pid())
    } else {
        "busy []".to_owned()
    };
    // Each try takes a second, longer than the leases last without renewal.
    assert_eq!(next.ask("add order-2"), busy);
    assert_eq!(other.ask("add other-2"), busy);
    writer.go_on();
    // Nobody has claimed the resource since, so what it began is still good.
    assert_eq!(writer.hear(), "applied");
    assert_eq!(next.ask("add order-2"), "applied");
    assert_eq!(other.ask("add other-2"), "applied");
    assert_eq!(shop.count(), 4);
}

#[test]
fn killing_a_stopped_writer_frees_the_data() {
    let shop = Shop::new();
    let [mut writer, mut next] = [(); 2].map(|()| shop.process(LEASE));
    writer.tell(&format!("enter {SKU}"));
    writer.hear_token();
    assert_eq!(writer.ask("stop order-1"), "inside");
    writer.wait_until_stopped();
    next.tell(&format!("enter {SKU}"));
    next.hear_token();
    assert!(next.ask("add order-2").starts_with("busy"));
    writer.kill();
    assert_eq!(next.ask("add order-2"), "applied");
    assert_eq!(shop.count(), 1);
    assert_eq!(next.ask("leave"), "left");
    let again = shop
        .process(PATIENCE)
        .ask(&format!("write {SKU} 99 order-1"));
    assert_eq!(again, "applied");
}
