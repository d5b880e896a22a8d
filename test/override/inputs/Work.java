// Owns: the work of the java row of the real-programs test.
// May include: nothing.
// Called by: runner.py, in an empty directory, without and with the library.
// Invariants: prints the same on every run; leaves no process behind.
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import java.util.zip.*;

public class Work {
  // Direct buffers and the native zip library are the parts of a Java program that use malloc.
  static long direct(int seed) {
    Random random = new Random(seed);
    List<ByteBuffer> kept = new ArrayList<>();
    long total = 0;
    for (int i = 0; i < 4000; i++) {
      ByteBuffer buffer = ByteBuffer.allocateDirect(random.nextInt(20000) + 8);
      buffer.putInt(0, i);
      kept.add(buffer);
      if (kept.size() > 100) total += kept.remove(random.nextInt(100)).getInt(0);
    }
    return total;
  }

  static long objects(int seed) {
    Map<String, List<Integer>> map = new HashMap<>();
    Random random = new Random(seed);
    for (int i = 0; i < 200000; i++) map.computeIfAbsent("k" + random.nextInt(5000), k -> new ArrayList<>()).add(i);
    return map.values().stream().mapToLong(List::size).sum() + map.size();
  }

  static int zip(int seed) {
    byte[] data = new byte[200000];
    new Random(seed).nextBytes(data);
    for (int i = 0; i < data.length; i++) data[i] &= 15;
    Deflater deflater = new Deflater(6);
    deflater.setInput(data);
    deflater.finish();
    byte[] packed = new byte[300000];
    int size = deflater.deflate(packed);
    deflater.end();
    return size;
  }

  public static void main(String[] args) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(4);
    List<Future<Long>> futures = new ArrayList<>();
    for (int i = 0; i < 8; i++) { int seed = i; futures.add(pool.submit(() -> direct(seed) + objects(seed) * 3 + zip(seed))); }
    for (Future<Long> future : futures) System.out.println("future " + future.get());
    pool.shutdown();
    List<Thread> threads = new ArrayList<>();
    ConcurrentLinkedQueue<Integer> queue = new ConcurrentLinkedQueue<>();
    for (int i = 0; i < 500; i++) { int n = i; Thread thread = new Thread(() -> queue.add(new int[100 + n].length)); thread.start(); threads.add(thread); }
    for (Thread thread : threads) thread.join();
    System.out.println("threads " + queue.stream().mapToInt(Integer::intValue).sum());
    String text = IntStream.range(0, 100000).parallel().mapToObj(Integer::toString).collect(Collectors.joining(","));
    byte[] hash = MessageDigest.getInstance("SHA-256").digest(text.getBytes());
    System.out.println("hash " + String.format("%02x%02x%02x%02x", hash[0], hash[1], hash[2], hash[3]));
    for (int i = 0; i < 3; i++) System.gc();
    Process process = new ProcessBuilder("echo", "child").redirectErrorStream(true).start();
    System.out.println(new String(process.getInputStream().readAllBytes()).trim() + " " + process.waitFor());
    System.out.println("java done");
  }
}
