# Owns: the work of the ruby row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
require 'digest'
require 'json'
require 'set'
require 'zlib'

random = Random.new(4711)
counts = Hash.new { |h, k| h[k] = [] }
200_000.times { |i| counts["k#{random.rand(20_000)}"] << i }
puts "keys #{counts.size} #{counts.sum { |k, v| k.size * v.size }}"
tree = (0...2000).to_h { |i| ["n#{i}", (0...20).map { |j| { 'j' => j, 's' => 'x' * j } }] }
text = JSON.generate(tree)
puts "json #{text.size} #{Digest::SHA256.hexdigest(JSON.generate(JSON.parse(text)))[0, 16]}"
puts "threads #{(0...6).map { |n| Thread.new { (1..20_000).map { |i| (i * n).to_s }.join.size } }.map(&:value).inspect}"
puts "scan #{text.scan(/"j":(1\d)/).size} #{text.gsub(/x+/) { |m| m.size.to_s }.size}"
puts "big #{(1..800).inject(:*).to_s.size} #{(3**20_000).digits.sum}"
puts "zlib #{Zlib::Inflate.inflate(Zlib::Deflate.deflate(text)) == text}"
reader, writer = IO.pipe
4.times { |n| fork { reader.close; GC.start; writer.puts "child #{n} #{(1..30_000).map(&:to_s).to_set.size}"; exit! 0 } }
writer.close
puts reader.read.lines.sort
Process.waitall
fibers = (0...300).map { |n| Fiber.new { s = +''; 50.times { s << 'y' * n; Fiber.yield }; s.size } }
51.times { fibers.each(&:resume) if fibers.all?(&:alive?) }
puts "fibers #{fibers.count(&:alive?)}"
GC.compact if GC.respond_to?(:compact)
20.times { GC.start }
puts "symbols #{(0...50_000).map { |i| "sym#{i}".to_sym }.uniq.size}"
puts 'ruby done'
