async fn function(longest: Duration) -> Reply<impl Display> {
    let mut entered = ::fenced::__private::installed_section(
            ::fenced::__private::PathBuilder::new("/locks/all")
                .text("/locks/all")
                .build(),
        )
        .hold(longest)
        .reentrant()
        .on_lost(::fenced::OnLost::Finish)
        .release(::fenced::Release::Detach)
        .enter()
        .await;
    let outcome = entered
        .begin(async move |guard: FencedGuard<'_>| {
            if false {
                return ::fenced::__private::output::<Reply<_>>();
            }
            Ok(guard.token())
        })
        .await;
    entered.end().await;
    <Reply<_> as ::fenced::FencedOutput>::from_section(outcome)
}
