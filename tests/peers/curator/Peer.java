import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.RetryOneTime;

/** A contender of Curator's: {@code Peer ADDRESS}, then one order a line; ends with its starter. */
public final class Peer {
    private final String address;
    private final List<CuratorFramework> sessions = new ArrayList<>();
    private Mutex held;

    public static void main(String[] arguments) throws Exception {
        Peer peer = new Peer(arguments[0]);
        peer.session(0);
        say("ready");
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String order = orders.readLine(); order != null; order = orders.readLine()) {
            say(peer.obey(order.split(" ")));
        }
        System.exit(0);
    }

    private Peer(String address) {
        this.address = address;
    }

    private String obey(String[] order) throws Exception {
        switch (order[0]) {
            case "acquire":
                return acquire(order[1], Long.parseLong(order[2]));
            case "release":
                held.release();
                return "released";
            case "revoke":
                Revoker.attemptRevoke(session(0), order[1]);
                return "asked";
            case "record":
                return record(order[1], Path.of(order[2]), Integer.parseInt(order[3]));
            case "contend":
                return contend(order[1], number(order[2]), number(order[3]), number(order[4]));
            default:
                throw new IllegalArgumentException(order[0]);
        }
    }

    private String acquire(String path, long millis) throws Exception {
        Mutex mutex = new Mutex(session(0), path);
        mutex.makeRevocable(lock -> say("wanted"));
        if (!mutex.acquire(millis, TimeUnit.MILLISECONDS)) {
            return "timeout";
        }
        held = mutex;
        return "acquired " + mutex.node() + " " + czxid(mutex);
    }

    /** Two inside at once would both create the file; the list has the tokens in their order. */
    private String record(String path, Path folder, int times) throws Exception {
        Mutex mutex = new Mutex(session(0), path);
        for (int time = 0; time < times; time++) {
            mutex.acquire();
            Path inside = Files.createFile(folder.resolve("inside"));
            String token = czxid(mutex) + "\n";
            Files.writeString(folder.resolve("tokens"), token, StandardOpenOption.APPEND);
            Files.delete(inside);
            mutex.release();
        }
        return "done";
    }

    private String contend(String path, int sessions, int threads, int times) throws Exception {
        List<CompletableFuture<Void>> contenders = new ArrayList<>();
        for (int session = 0; session < sessions; session++) {
            InterProcessMutex mutex = new InterProcessMutex(session(session), path);
            for (int thread = 0; thread < threads; thread++) {
                CompletableFuture<Void> done = new CompletableFuture<>();
                contenders.add(done);
                new Thread(() -> cycle(mutex, times, done)).start();
            }
        }
        for (CompletableFuture<Void> contender : contenders) {
            contender.get();
        }
        return "done";
    }

    private static void cycle(InterProcessMutex mutex, int times, CompletableFuture<Void> done) {
        try {
            for (int time = 0; time < times; time++) {
                mutex.acquire();
                mutex.release();
            }
            done.complete(null);
        } catch (Exception failure) {
            done.completeExceptionally(failure);
        }
    }

    private CuratorFramework session(int index) {
        while (sessions.size() <= index) {
            CuratorFramework session = CuratorFrameworkFactory.newClient(address, new RetryOneTime(100));
            session.start();
            sessions.add(session);
        }
        return sessions.get(index);
    }

    private long czxid(Mutex mutex) throws Exception {
        return session(0).checkExists().forPath(mutex.node()).getCzxid();
    }

    private static int number(String word) {
        return Integer.parseInt(word);
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** A mutex that tells its node. */
    private static final class Mutex extends InterProcessMutex {
        Mutex(CuratorFramework session, String path) {
            super(session, path);
        }

        String node() {
            return getLockPath();
        }
    }
}
