package api

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestBackup(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			f := &fake{file: bytes.Repeat([]byte("backup"), delivered), backup: Backup{Mesh: "0123456789abcdef", Node: "n\n1 %", Index: 7, Missing: []string{"what job j1 has learned"}}}
			c := serve(t, network, f)
			var got bytes.Buffer
			about, err := c.Backup(t.Context(), BackupRequest{Jobs: true}, &got)
			if err != nil || !bytes.Equal(got.Bytes(), f.file) || !f.was(BackupRequest{Jobs: true}) {
				t.Errorf("%d bytes of %d: %v", got.Len(), len(f.file), err)
			}
			if about.Node != "n\n1 %" || about.Index != 7 || len(about.Missing) != 1 || about.Datasets == nil || about.Jobs == nil {
				t.Errorf("it says %+v", about)
			}
			f.err = Conflict("ask n2")
			got.Reset()
			_, err = c.Backup(t.Context(), BackupRequest{}, &got)
			if e, is := errors.AsType[*Error](err); !is || e.Status != http.StatusConflict || e.Message != "ask n2" || got.Len() > 0 {
				t.Errorf("refused, %d bytes come: %v", got.Len(), err)
			}
		})
	}
}

// Where other machines can connect there are no backups, and nobody gets one by reading.
func TestBackupIsNotPublic(t *testing.T) {
	for _, h := range []http.Handler{PublicHandler(&fake{}, metrics()), ReadOnly(checked(t, &fake{}))} {
		if w := post(h, "/v1/backup", "{}"); w.Code != http.StatusForbidden {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	f := &fake{}
	r := httptest.NewRequest(http.MethodGet, "/v1/backup", nil)
	r.Host = "localhost:1"
	w := httptest.NewRecorder()
	checked(t, f).ServeHTTP(w, r)
	if w.Code == http.StatusOK || f.last() != nil {
		t.Errorf("by GET: %d", w.Code)
	}
	if w := post(checked(t, f), "/v1/backup", `{"everything":true}`); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "everything") || f.last() != nil {
		t.Errorf("an unknown field: %d %s", w.Code, w.Body)
	}
}
