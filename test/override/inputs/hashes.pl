# Owns: the work of the perl row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
use strict;
use warnings;
use threads;
use Digest::SHA qw(sha256_hex);
use List::Util qw(sum reduce shuffle);

my %count;
my $seed = 12345;
sub next_random { $seed = ($seed * 1103515245 + 12345) % 2147483648; return $seed }
for my $i (1 .. 80_000) {
  my $key = sprintf("k%05d", next_random() % 12_000);
  $count{$key}{n}++;
  push @{ $count{$key}{at} }, $i if $i % 3 == 0;
}
print "keys ", scalar(keys %count), "\n";
my @top = (sort { $count{$b}{n} <=> $count{$a}{n} || $a cmp $b } keys %count)[0 .. 4];
print join(" ", map { "$_=$count{$_}{n}" } @top), "\n";
delete $count{$_} for grep { $count{$_}{n} % 2 } keys %count;
print "left ", scalar(keys %count), " ", sum(map { scalar @{ $count{$_}{at} // [] } } keys %count), "\n";

my $text = join " ", map { "word" . next_random() % 500 } 1 .. 30_000;
my %words;
$words{$1}++ while $text =~ /\b(word\d+)\b/g;
(my $changed = $text) =~ s/word(\d+)/$1 % 7 ? "w$1" : "<" . ("x" x ($1 % 40)) . ">"/ge;
print "text ", length($text), " ", length($changed), " ", sha256_hex($changed), "\n";
my @grown = ("");
for my $i (1 .. 3000) { $grown[$i] = $grown[ $i - 1 ] . chr(65 + $i % 26); }
print "grown ", sum(map { length } @grown), "\n";

my @threads = map {
  my $n = $_;
  threads->create(sub {
    my %own;
    $own{ $_ % 997 } .= "$n," for 1 .. 30_000;
    return sha256_hex(join ";", map { "$_=$own{$_}" } sort keys %own);
  });
} 1 .. 4;
print "thread ", $_->join, "\n" for @threads;

pipe(my $in, my $out) or die;
for my $child (1 .. 4) {
  defined(my $pid = fork) or die;
  next if $pid;
  my @list = sort { $a <=> $b } map { $_ * 7919 % 10007 * $child } 1 .. 20_000;
  syswrite $out, "child $child " . sum(@list[0 .. 99]) . "\n";
  exit 0;
}
close $out;
print sort <$in>;
1 while wait != -1;
print "perl done\n";
