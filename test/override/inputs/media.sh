# Owns: the work of the picture, film and page row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
set -eu -o pipefail
case $1 in
ffmpeg)
  src=(-f lavfi -i testsrc=duration=4:size=640x360:rate=25 -f lavfi -i sine=frequency=440:duration=4)
  run() { ffmpeg -hide_banner -loglevel error -nostdin -y "$@"; }
  run "${src[@]}" -c:v libx264 -preset fast -threads 2 -c:a aac -threads 2 -bitexact -flags +bitexact out.mp4
  run -i out.mp4 -f framemd5 - | grep -v '^#' | md5sum
  run "${src[@]}" -c:v mpeg4 -threads 1 -bitexact -flags +bitexact out.avi && md5sum out.avi
  run -i out.mp4 -vf "scale=320:180,hue=s=0,boxblur=2,split[a][b];[a]pad=iw*2[c];[c][b]overlay=w,format=yuv420p" -c:v libvpx -b:v 500k -threads 2 -an out.webm
  run -i out.webm -f null -
  run -i out.mp4 -vf fps=2 -c:v png f%02d.png && cat f*.png | md5sum
  ffprobe -v error -show_entries stream=codec_name,width,nb_frames -of csv out.mp4
  ;;
ghostscript)
  cat > page.ps <<'PS'
%!PS
/Helvetica findfont 20 scalefont setfont
1 1 12 { /page exch def
  0 1 60 { /i exch def gsave 300 400 translate i 6 mul rotate i 60 div 1 i 60 div sub 0.5 setrgbcolor
    0 0 moveto 200 i 3 mul 100 20 i 2 mul 250 curveto i 10 div setlinewidth stroke grestore } for
  1 1 40 { /k exch def 40 k 18 mul moveto (page ) show page 10 string cvs show ( line ) show k 10 string cvs show } for
  /d 3000 dict def 1 1 3000 { dup 20 string cvs cvn exch d 3 1 roll put } for
  /s 60000 string def 0 1 59999 { s exch dup 251 mod put } for
  gsave 100 100 translate 200 200 scale 16 16 8 [16 0 0 -16 0 16] { s 0 256 getinterval } image grestore
  showpage } for
PS
  gs -q -dBATCH -dNOPAUSE -dSAFER -sDEVICE=png16m -r110 -dTextAlphaBits=4 -dGraphicsAlphaBits=4 -sOutputFile=p%02d.png page.ps
  cat p*.png | sha256sum
  gs -q -dBATCH -dNOPAUSE -sDEVICE=pdfwrite -sOutputFile=out.pdf page.ps
  gs -q -dBATCH -dNOPAUSE -sDEVICE=ppmraw -r60 -dNumRenderingThreads=2 -dMaxBitmap=100000 -sOutputFile=- out.pdf | sha256sum
  gs -q -dBATCH -dNOPAUSE -sDEVICE=txtwrite -sOutputFile=- out.pdf | md5sum
  ;;
imagemagick)
  export MAGICK_THREAD_LIMIT=2
  convert -size 600x400 -seed 7 plasma:fractal -depth 8 base.ppm
  hash() { convert "$1" -depth 8 rgb:- | sha256sum; }
  hash base.ppm
  convert base.ppm -resize 900x600 -blur 0x3 -rotate 13 -sharpen 0x1 -colors 64 a.png && hash a.png
  convert base.ppm -distort Perspective '0,0 20,10 599,0 560,30 0,399 10,390 599,399 599,350' -morphology Dilate Octagon b.png && hash b.png
  convert base.ppm -quality 80 c.jpg && hash c.jpg
  convert base.ppm \( +clone -flip \) +append \( +clone -negate \) -append -fft +depth d.miff && identify -format '%w %h %n\n' d.miff
  montage base.ppm a.png b.png c.jpg -tile 2x2 -geometry 200x150+4+4 e.png && hash e.png
  compare -metric RMSE base.ppm c.jpg null: 2>&1 | cut -c1-6 || true
  for i in $(seq 1 12); do echo "-size 200x200 gradient:red-blue -swirl $((i * 30))"; done | while read -r line; do convert $line -depth 8 rgb:- | md5sum; done
  convert -delay 10 -loop 0 base.ppm -resize 200x \( +clone -modulate 80 \) \( +clone -modulate 120 \) -layers optimize f.gif && identify f.gif | wc -l
  ;;
chromium)
  cat > page.html <<'HTML'
<!doctype html><title>page</title><style>div { display: inline-block; border: 1px solid } @keyframes k { to { opacity: 0 } } p { animation: k 1s }</style>
<body><p>text</p><canvas id=c width=300 height=200></canvas><script>
const list = document.createElement('ul');
for (let i = 0; i < 3000; i++) { const li = document.createElement('li'); li.textContent = 'item ' + (i * 7919 % 1009); list.append(li); }
document.body.append(list);
let text = ''; for (let i = 0; i < 50000; i++) text += i;
const data = JSON.parse(JSON.stringify(Array.from({ length: 20000 }, (_, i) => ({ i, s: 'x'.repeat(i % 30) }))));
const context = document.getElementById('c').getContext('2d');
for (let i = 0; i < 500; i++) { context.fillStyle = 'hsl(' + i + ',50%,50%)'; context.fillRect(i % 300, i % 200, 40, 30); }
let sum = 0; for (const v of context.getImageData(0, 0, 300, 200).data) sum += v;
const worker = new Worker(URL.createObjectURL(new Blob(["postMessage(Array.from({ length: 100000 }, (_, i) => 'w' + i).join('').length)"])));
worker.onmessage = (e) => { document.title = 'worker ' + e.data; document.getElementById('r').textContent = 'chromium done ' + e.data; };
document.body.append(Object.assign(document.createElement('pre'), { id: 'r', textContent: 'waiting' }));
document.body.append('sizes ' + text.length + ' ' + data.length + ' canvas ' + (sum > 0) + ' width ' + (list.offsetWidth > 0));
</script>
HTML
  chrome=(chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-extensions --disable-background-networking --disable-component-update
    --disable-sync --disable-crash-reporter --host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir="$PWD/profile" --virtual-time-budget=8000)
  "${chrome[@]}" --dump-dom "file://$PWD/page.html" 2> chromium.err > dom || { tail -20 chromium.err >&2; exit 1; }
  sha256sum dom
  grep -o 'sizes.*' dom | sed -n 1,1p
  grep -o 'chromium done [0-9]*' dom
  "${chrome[@]}" --screenshot="$PWD/shot.png" --window-size=800,600 "file://$PWD/page.html" 2> shot.err || { tail -20 shot.err >&2; exit 1; }
  [ "$(stat -c %s shot.png)" -gt 5000 ] && echo "picture taken"
  ;;
valgrind)
  cat > small.c <<'CODE'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
  char* kept[50] = {0};
  unsigned sum = 0;
  for (int i = 0; i < 5000; i++) {
    char* p = malloc((size_t)(i % 700) + 1);
    memset(p, i, (size_t)(i % 700) + 1);
    sum += (unsigned char)p[i % 700];
    free(kept[i % 50]);
    kept[i % 50] = i % 3 ? p : realloc(p, 1000);
  }
  for (int i = 0; i < 50; i++) free(kept[i]);
  if (argc > 1) { volatile char* gone = malloc(10); free((void*)gone); sum += (unsigned)gone[3] * 0; }
  printf("%s sum %u\n", argc > 1 ? argv[1] : "plain", sum);
  return 3;
}
CODE
  gcc -g -O1 small.c -o small
  # The tool replaces every malloc it finds, also a preloaded one, so that its findings stay what they were.
  code=0; valgrind -q --error-exitcode=9 --leak-check=full ./small || code=$?
  echo "memcheck $code"
  code=0; valgrind -q --error-exitcode=9 ./small wrong 2> memcheck.txt || code=$?
  echo "memcheck of a use after free $code $(grep -c 'Invalid read' memcheck.txt)"
  code=0; valgrind -q --tool=none ./small none || code=$?
  echo "none $code"
  code=0; valgrind -q --tool=memcheck --soname-synonyms=somalloc=nouserintercepts ./small unreplaced > own.txt 2> own.log || code=$?
  cat own.txt
  echo "unreplaced $code"
  code=0; valgrind -q --tool=helgrind ./small helgrind || code=$?
  echo "helgrind $code"
  ;;
esac
echo "$1 done"
