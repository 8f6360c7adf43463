package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

// Estimates of what media weigh, in tokens (DESIGN §3.2).
const (
	minImageTokens = 85
	maxImageTokens = 1600 // also of an image whose size is not known
	pixelsPerToken = 750
	pageTokens     = 2000
	pageBytes      = 50_000 // of a PDF whose pages cannot be counted
	audioBytes     = 1600   // of audio for one token
	maxPeek        = 1 << 20
)

// mediaOf reads a media block of any of the three formats: its estimate and its identity (the data as it stands, or
// the URL, path or file id). ok is false if the block is not one that we know.
//
// Media.Bytes is the length of the data or reference alone, so that markers and field order do not move it.
func mediaOf(f *fields, kind string) (m engine.Media, id []byte, ok bool) {
	b := f.b
	switch kind {
	case "image", "document":
		src := f.get("source")
		if !src.is(b, '{') {
			return m, nil, false
		}
		var s fields
		s.read(b, src)
		if s.dup {
			return m, nil, false
		}
		m.Type = s.str("media_type")
		switch s.str("type") {
		case "base64":
			return inline(m.Type, s.get("data"), b)
		case "text":
			d := s.get("data")
			m.Inline, m.Bytes = true, inner(d)
			m.Tokens = max(1, engine.JSONText(d.of(b)).Len()/4)
			return m, d.of(b), d.is(b, '"')
		case "content":
			c := s.get("content")
			m.Inline, m.Bytes, m.Tokens = true, c.To-c.From, max(1, (c.To-c.From)/4)
			return m, c.of(b), !c.empty()
		}
		if kind == "document" {
			return reference(m, src, b, pageTokens)
		}
		return reference(m, src, b, maxImageTokens)
	case "image_url", "input_image":
		u := f.get("image_url")
		if u.is(b, '{') {
			var s fields
			s.read(b, u)
			u = s.get("url")
		}
		if u.is(b, '"') {
			if t, d, ok := dataURL(b, u); ok {
				return inline(t, d, b)
			}
			return reference(m, u, b, maxImageTokens)
		}
		if id := f.get("file_id"); id.is(b, '"') {
			return reference(m, id, b, maxImageTokens)
		}
	case "input_audio":
		a := f.get("input_audio")
		if a.is(b, '{') {
			var s fields
			s.read(b, a)
			return inline("audio/"+s.str("format"), s.get("data"), b)
		}
	case "file", "input_file":
		s := *f
		if v := f.get("file"); v.is(b, '{') {
			s.read(b, v)
		}
		if d := s.get("file_data"); d.is(b, '"') {
			if t, d, ok := dataURL(b, d); ok {
				return inline(t, d, b)
			}
			t := ""
			if strings.HasSuffix(strings.ToLower(s.str("filename")), ".pdf") {
				t = "application/pdf"
			}
			return inline(t, d, b)
		}
		for _, name := range [...]string{"file_id", "file_url"} {
			if v := s.get(name); v.is(b, '"') {
				return reference(m, v, b, pageTokens)
			}
		}
	}
	return m, nil, false
}

func inner(s Span) int { return max(0, s.To-s.From-2) }

func reference(m engine.Media, at Span, b []byte, tokens int) (engine.Media, []byte, bool) {
	m.Bytes, m.Tokens = inner(at), tokens
	return m, at.of(b), true
}

// dataURL takes a data: URL apart: the media type, and the span of its data, which ends with the token's quote and
// begins with the comma in the place of the other.
func dataURL(b []byte, at Span) (kind string, data Span, ok bool) {
	token := at.of(b)
	if !bytes.HasPrefix(token, []byte(`"data:`)) {
		return "", Span{}, false
	}
	comma := bytes.IndexByte(token, ',')
	if comma < 0 {
		return "", Span{}, false
	}
	kind, _, _ = strings.Cut(string(token[6:comma]), ";")
	return strings.ReplaceAll(kind, `\/`, "/"), Span{at.From + comma, at.To}, true
}

// inline estimates data in base64. The span has one byte before and one behind the data.
func inline(kind string, at Span, b []byte) (engine.Media, []byte, bool) {
	m := engine.Media{Type: kind, Inline: true, Bytes: inner(at)}
	if at.empty() {
		return m, nil, false
	}
	data := b[at.From+1 : at.To-1]
	switch {
	case strings.HasPrefix(kind, "image/"):
		m.Tokens = imageTokens(data)
	case kind == "application/pdf":
		m.Tokens = pageTokens * pdfPages(data)
	case strings.HasPrefix(kind, "audio/"):
		m.Tokens = max(1, len(data)/4*3/audioBytes)
	default:
		m.Tokens = max(1, len(data)/4*3/4)
	}
	return m, data, true
}

// decodeStart decodes the first n bytes of base64 that may have JSON escapes in it.
func decodeStart(data []byte, n int) []byte {
	want := (n + 2) / 3 * 4
	in := data[:min(len(data), want)]
	if bytes.IndexByte(in, '\\') >= 0 {
		var clean []byte
		for i := 0; i < len(data) && len(clean) < want; i++ {
			switch c := data[i]; {
			case c != '\\':
				clean = append(clean, c)
			case i+1 < len(data) && data[i+1] == '/':
				clean = append(clean, '/')
				i++
			default:
				i++ // a line break
			}
		}
		in = clean
	}
	in = in[:len(in)/4*4]
	out := make([]byte, base64.StdEncoding.DecodedLen(len(in)))
	got, _ := base64.StdEncoding.Decode(out, in) // what came before a fault is still good
	return out[:got]
}

// imageTokens reads the size from the image's header: w·h/750, 85 to 1,600.
func imageTokens(data []byte) int {
	w, h := imageSize(decodeStart(data, 64))
	for peek := 1 << 12; w == 0 && peek <= maxPeek && len(data) > 64; peek <<= 4 {
		head := decodeStart(data, peek)
		if len(head) < 2 || head[0] != 0xff || head[1] != 0xd8 {
			break
		}
		w, h = imageSize(head)
		if len(head) < peek-2 {
			break
		}
	}
	if w <= 0 || h <= 0 || w > 1<<20 || h > 1<<20 {
		return maxImageTokens
	}
	return min(max(w*h/pixelsPerToken, minImageTokens), maxImageTokens)
}

// imageSize reads the size of a PNG, GIF, WebP or JPEG from its first bytes; 0 if they do not say.
func imageSize(b []byte) (w, h int) {
	switch {
	case len(b) >= 24 && string(b[:8]) == "\x89PNG\r\n\x1a\n":
		return int(binary.BigEndian.Uint32(b[16:])), int(binary.BigEndian.Uint32(b[20:]))
	case len(b) >= 10 && string(b[:4]) == "GIF8":
		return int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:]))
	case len(b) >= 30 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		switch string(b[12:16]) {
		case "VP8X":
			return 1 + int(b[24]) + int(b[25])<<8 + int(b[26])<<16, 1 + int(b[27]) + int(b[28])<<8 + int(b[29])<<16
		case "VP8L":
			v := binary.LittleEndian.Uint32(b[21:])
			return 1 + int(v&0x3fff), 1 + int(v>>14&0x3fff)
		case "VP8 ":
			return int(binary.LittleEndian.Uint16(b[26:])) & 0x3fff, int(binary.LittleEndian.Uint16(b[28:])) & 0x3fff
		}
	case len(b) > 4 && b[0] == 0xff && b[1] == 0xd8:
		for i := 2; i+9 < len(b) && b[i] == 0xff; {
			kind := b[i+1]
			if kind >= 0xc0 && kind <= 0xcf && kind != 0xc4 && kind != 0xc8 && kind != 0xcc {
				return int(binary.BigEndian.Uint16(b[i+7:])), int(binary.BigEndian.Uint16(b[i+5:]))
			}
			i += 2 + int(binary.BigEndian.Uint16(b[i+2:]))
		}
	}
	return 0, 0
}

// pdfPages counts page objects in the first MiB. Where that shows none (they are compressed in newer files), or the
// file is longer, 50,000 bytes count as a page, if that is more.
func pdfPages(data []byte) int {
	head := decodeStart(data, maxPeek)
	n := 0
	for rest := head; ; {
		i := bytes.Index(rest, []byte("/Type"))
		if i < 0 {
			break
		}
		rest = bytes.TrimLeft(rest[i+5:], " \r\n")
		if bytes.HasPrefix(rest, []byte("/Page")) && !bytes.HasPrefix(rest, []byte("/Pages")) {
			n++
		}
	}
	size := len(data) / 4 * 3
	if n == 0 || size > maxPeek {
		n = max(n, (size+pageBytes-1)/pageBytes, 1)
	}
	return n
}
