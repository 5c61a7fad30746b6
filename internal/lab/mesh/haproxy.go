package mesh

import (
	"errors"
	"fmt"
	"strings"
)

// files are the names of the files that a configuration of HAProxy refers to.
type files struct{ identity, root string }

// configuration returns the configuration of a node's HAProxy: an end for the node's pods, an end for other proxies,
// and a backend for each peer. The PROXY protocol carries the pod's destination; HAProxy sends it before the TLS
// handshake, so the addresses of both ends are readable, as in an IP header. "server NAME 0.0.0.0:0" connects to the
// destination of the connection itself.
func configuration(n Node, f files) string {
	secured := fmt.Sprintf("ssl crt %s ca-file %s verify required ssl-min-ver TLSv1.3", f.identity, f.root)
	var b, backends strings.Builder
	fmt.Fprint(&b, `global
	maxconn 4096
defaults
	mode tcp
	timeout connect 5s
	timeout client 1h
	timeout server 1h
`)
	fmt.Fprintf(&b, "frontend pods\n\tbind 0.0.0.0:%d transparent\n\tbind [::]:%[1]d transparent v6only\n", n.Redirect)
	for _, p := range n.Peers {
		fmt.Fprintf(&b, "\tuse_backend %s if { dst %s }\n", p.Name, strings.ReplaceAll(joined(p.Serves), ",", " "))
		fmt.Fprintf(&backends, "backend %s\n\tserver proxy %s source %s send-proxy-v2 %s verifyhost %[1]s\n",
			p.Name, p.Proxy, n.Listen.Addr(), secured)
	}
	fmt.Fprint(&b, "\tdefault_backend own\n")
	fmt.Fprintf(&b, "frontend peers\n\tbind %s accept-proxy %s\n\tdefault_backend own\n", n.Listen, secured)
	fmt.Fprint(&b, "backend own\n\tserver pod 0.0.0.0:0\n", backends.String())
	return b.String()
}

// version returns the version of HAProxy in the output of "haproxy -v": "HAProxy version 2.6.12-1+deb12u4 2026/…".
func version(output string) (string, error) {
	words := strings.Fields(output)
	for i, word := range words {
		if word == "version" && i+1 < len(words) {
			return words[i+1], nil
		}
	}
	return "", errors.New("haproxy -v does not tell its version")
}
