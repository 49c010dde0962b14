use crate::shop::{PATIENCE, SKU, Shop, number};

const PROCESSES: i64 = 8;
const SECTIONS: i64 = 40;

#[test]
fn no_two_processes_meet_inside() {
    let shop = Shop::new();
    let mut processes: Vec<_> = (0..PROCESSES).map(|_| shop.process(PATIENCE)).collect();
    for process in &mut processes {
        process.tell(&format!("visit {SKU} {SECTIONS}"));
    }
    for process in &processes {
        assert_eq!(process.hear(), "done");
    }
    assert_eq!(shop.count(), PROCESSES * SECTIONS, "no update is lost");
    assert_eq!(shop.contenders(), 0);
    let data = shop.data();
    let mut visits = data
        .prepare("SELECT token, event FROM visit ORDER BY number")
        .unwrap();
    let visits = visits.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let visits: Vec<(i64, String)> = visits.unwrap().map(Result::unwrap).collect();
    let mut last = 0;
    for visit in visits.chunks(2) {
        let [(entered, enter), (left, leave)] = visit else {
            panic!("half a visit: {visit:?}");
        };
        assert_eq!((enter.as_str(), leave.as_str()), ("enter", "leave"));
        assert_eq!(entered, left, "another was inside");
        assert!(*entered > last, "{entered} after {last}");
        last = *entered;
    }
    assert_eq!(
        number(&data, "SELECT count(DISTINCT token) FROM visit", []),
        PROCESSES * SECTIONS
    );
}
