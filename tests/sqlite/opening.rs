use std::time::Duration;

use crate::process::Process;

#[test]
fn many_processes_open_a_new_file_at_once() {
    let mut processes: Vec<_> = (0..12).map(|_| Process::start()).collect();
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shop.db");
        let order = format!(
            "open {} {}",
            Duration::from_secs(5).as_millis(),
            file.display()
        );
        for process in &mut processes {
            process.tell(&order);
        }
        for process in &processes {
            assert_eq!(process.hear(), "opened");
        }
    }
}
