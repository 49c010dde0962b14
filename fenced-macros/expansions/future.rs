fn future<'a>(
    locks: &'a MemoryLocks,
) -> Pin<Box<dyn Future<Output = Reply<i64>> + Send + 'a>> {
    Box::pin(async move {
        let mut entered = ::fenced::__private::template_section(
                &locks,
                ::fenced::__private::PathBuilder::new("/locks/boxed")
                    .text("/locks/boxed")
                    .build(),
            )
            .enter()
            .await;
        let outcome = entered
            .begin(async move |guard: FencedGuard<'_>| {
                if false {
                    return ::fenced::__private::output::<Reply<i64>>();
                }
                Ok(guard.token().get())
            })
            .await;
        entered.end().await;
        <Reply<i64> as ::fenced::FencedOutput>::from_section(outcome)
    })
}
