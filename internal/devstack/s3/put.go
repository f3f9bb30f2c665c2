package s3

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/johannesboyne/gofakes3"
)

// ObjectBytesMax bounds one put, as the service bounds one that is not multipart.
const ObjectBytesMax = 5 << 30

// checkPut compares the checksum that came with an object, and leaves the body
// for the next reader.
func (s *Server) checkPut(w http.ResponseWriter, r *http.Request) error {
	digest, want, err := checksum(r.Header)
	if err != nil {
		return err
	}
	if digest != nil {
		var body bytes.Buffer
		if _, err := io.Copy(io.MultiWriter(&body, digest), http.MaxBytesReader(w, r.Body, ObjectBytesMax)); err != nil {
			return gofakes3.ErrIncompleteBody
		}
		if base64.StdEncoding.EncodeToString(digest.Sum(nil)) != want {
			return gofakes3.ErrorMessage(gofakes3.ErrBadDigest, "the checksum is not that of the body")
		}
		r.Body = io.NopCloser(&body)
	}
	echoEncryption(w, r)
	return nil
}

// checksum returns the digest to compute and what it must be, or nothing when no
// checksum was sent.
func checksum(h http.Header) (hash.Hash, string, error) {
	for name := range h {
		if !strings.HasPrefix(name, checksumPrefix) || name == "X-Amz-Checksum-Algorithm" || name == checksumMode {
			continue
		}
		switch strings.TrimPrefix(name, checksumPrefix) {
		case "Crc32":
			return crc32.NewIEEE(), h.Get(name), nil
		case "Crc32c":
			return crc32.New(crc32.MakeTable(crc32.Castagnoli)), h.Get(name), nil
		case "Sha1":
			return sha1.New(), h.Get(name), nil
		case "Sha256":
			return sha256.New(), h.Get(name), nil
		}
		return nil, "", notImplemented("the header " + name)
	}
	return nil, "", nil
}

type copyResult struct {
	XMLName      xml.Name `xml:"CopyObjectResult"`
	ETag         string
	LastModified string
}

// copyObject copies an object onto another, or onto itself to change its
// metadata, which makes it as new as a put would.
func (s *Server) copyObject(w http.ResponseWriter, r *http.Request) error {
	fromBucket, fromKey, err := source(r.Header.Get(copySource))
	if err != nil {
		return err
	}
	bucket, key := split(r)
	replace, err := replaces(r.Header)
	if err != nil {
		return err
	}
	if !replace && fromBucket == bucket && fromKey == key && r.Header.Get(sse) == "" {
		return gofakes3.ErrorMessage(invalidRequest, "a copy of an object onto itself must change something")
	}
	object, err := s.store.GetObject(fromBucket, fromKey, nil)
	if err != nil {
		return err
	}
	defer object.Contents.Close()

	now := s.now().UTC()
	meta := metadata(r.Header, object.Metadata, replace, now)
	if _, err := s.store.PutObject(bucket, key, meta, object.Contents, object.Size, nil); err != nil {
		return err
	}
	echoEncryption(w, r)
	w.Header().Set("Content-Type", "application/xml")
	writeXML(w, copyResult{ETag: gofakes3.FormatETag(object.Hash), LastModified: now.Format(time.RFC3339)})
	return nil
}

// source reads bucket and key from the header, which is a path with its
// characters escaped.
func source(header string) (bucket, key string, err error) {
	if strings.Contains(header, "?") {
		return "", "", notImplemented("a version in " + copySource)
	}
	path, err := url.PathUnescape(strings.TrimPrefix(header, "/"))
	bucket, key, found := strings.Cut(path, "/")
	if err != nil || !found || key == "" {
		return "", "", invalidArgument(copySource + " must be a bucket and a key")
	}
	return bucket, key, nil
}

// replaces reads whether the request's metadata stands in for the source's.
func replaces(h http.Header) (bool, error) {
	switch h.Get(metadataDirective) {
	case "", "COPY":
		return false, nil
	case "REPLACE":
		return true, nil
	}
	return false, invalidArgument(metadataDirective + " must be COPY or REPLACE")
}

// metadata is what a copy carries: the checksum, which is that of the content,
// the source's metadata or the request's, the request's encryption, and a date
// of its own.
func metadata(h http.Header, from map[string]string, replace bool, now time.Time) map[string]string {
	meta := map[string]string{}
	for name, v := range from {
		if strings.HasPrefix(name, checksumPrefix) || !replace && describes(name) {
			meta[name] = v
		}
	}
	for name := range h {
		if replace && describes(name) || name == sse || name == sseKey || name == sseBucketKey {
			meta[name] = h.Get(name)
		}
	}
	meta["Last-Modified"] = now.Format(http.TimeFormat)
	return meta
}

// describes reports whether a header is metadata of an object.
func describes(name string) bool {
	return strings.HasPrefix(name, metaPrefix) || name == "Content-Type" || name == "Content-Encoding" || name == "Content-Disposition"
}
