// Package result presents what was measured: as aligned tables on a terminal, and as a
// Markdown page with the machine and the date for docs/results. It does not measure,
// and knows nothing of what the figures mean.
package result

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// A Page is the result of one command.
type Page struct {
	Title   string
	Command string // that made it
	Version string // of the program; "" or dev: the commit that it was built or run from

	notes  []string
	blocks []block
}

// A block is a table, a paragraph or a picture.
type block struct {
	table    *Table
	text     string
	picture  string // a file
	pictured string // what it shows
}

// Note adds a sentence without its full stop, on what the figures depend on. Notes stand
// before all else.
func (p *Page) Note(sentence string) { p.notes = append(p.notes, sentence) }

// Table adds a table, unless it has no rows.
func (p *Page) Table(t Table) {
	if len(t.Rows) > 0 {
		p.blocks = append(p.blocks, block{table: &t})
	}
}

// Text adds a paragraph.
func (p *Page) Text(paragraph string) { p.blocks = append(p.blocks, block{text: paragraph}) }

// Picture adds a picture that lies in a file; "": there is none. It is left out on a
// terminal.
func (p *Page) Picture(file, shows string) {
	if file != "" {
		p.blocks = append(p.blocks, block{picture: file, pictured: shows})
	}
}

// Print prints notes and blocks for a terminal, with an empty line between them.
func (p *Page) Print(to io.Writer) error {
	var s bytes.Buffer
	for _, n := range p.notes {
		_, _ = fmt.Fprintf(&s, "Note: %s.\n", n)
	}
	for _, b := range p.blocks {
		if b.picture != "" {
			continue
		}
		if s.Len() > 0 {
			s.WriteByte('\n')
		}
		if b.table != nil {
			_ = b.table.Text(&s) // a buffer takes everything
			continue
		}
		_, _ = fmt.Fprintln(&s, b.text)
	}
	_, err := to.Write(s.Bytes())
	return err
}

// Markdown prints the page as a document, whose pictures are linked from a folder.
func (p *Page) Markdown(to io.Writer, folder string) error {
	var s bytes.Buffer
	_, _ = fmt.Fprintf(&s, "# %s\n\n", p.Title)
	m := ThisMachine()
	head := Table{Head: []string{"Written by", "`" + p.Command + "`"}, Rows: [][]string{
		{"version", p.version()}, {"date", time.Now().UTC().Format(time.DateOnly)}, {"processor", m.Processor}, {"cores", fmt.Sprint(m.Cores)},
		{"system", m.System + ", " + m.Platform}, {"Go", m.Go},
	}}
	_ = head.Markdown(&s) // a buffer takes everything
	s.WriteByte('\n')
	p.body(&s, folder)
	_, err := to.Write(s.Bytes())
	return err
}

// Body prints notes and blocks in Markdown, with an empty line between them and without
// the page's head, for a terminal from which they are copied. Pictures are left out.
func (p *Page) Body(to io.Writer) error {
	var s bytes.Buffer
	p.body(&s, "")
	_, err := to.Write(s.Bytes())
	return err
}

// body writes notes and blocks, with pictures linked from a folder; "": without any.
func (p *Page) body(s *bytes.Buffer, folder string) {
	for i, n := range p.notes {
		if i > 0 {
			s.WriteByte('\n')
		}
		_, _ = fmt.Fprintf(s, "Note: %s.\n", n)
	}
	first := len(p.notes) == 0
	for _, b := range p.blocks {
		if b.picture != "" && folder == "" {
			continue
		}
		if !first {
			s.WriteByte('\n')
		}
		first = false
		switch {
		case b.table != nil:
			_ = b.table.Markdown(s) // a buffer takes everything
		case b.picture != "":
			link := b.picture
			if relative, err := relative(folder, b.picture); err == nil {
				link = relative
			}
			_, _ = fmt.Fprintf(s, "![%s](%s)\n", b.pictured, filepath.ToSlash(link))
		default:
			_, _ = fmt.Fprintln(s, b.text)
		}
	}
}

func relative(folder, file string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	if file, err = filepath.Abs(file); err != nil {
		return "", err
	}
	return filepath.Rel(folder, file)
}

// Write writes the page into a Markdown file; "": there is to be none.
func (p *Page) Write(file string) error {
	if file == "" {
		return nil
	}
	var s bytes.Buffer
	if err := p.Markdown(&s, filepath.Dir(file)); err != nil {
		return err
	}
	if err := os.WriteFile(file, s.Bytes(), 0o644); err != nil { //nolint:gosec // a document to be read
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// Writable returns an error unless a file can be written, and does not change it. It is
// asked before what takes long; "" is no file, and can be.
func Writable(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644) //nolint:gosec // a document to be read
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// Command is the command line of this process, whose program is called so.
func Command(program string) string {
	return strings.Join(append([]string{program}, os.Args[1:]...), " ")
}

// version is the program's, unless its build was given none.
func (p *Page) version() string {
	if p.Version == "" || p.Version == "dev" {
		return commit()
	}
	return p.Version
}

// commit names what this program was built from: what the build says, else what git says
// of the working folder.
func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		revision, modified := "", ""
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = "-dirty"
			}
		}
		if revision != "" {
			return revision + modified
		}
	}
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude", "*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
