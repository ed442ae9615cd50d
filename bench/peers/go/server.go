// SPDX-License-Identifier: MIT

// The services of these rows in Go's net/http, with nothing but its standard library:
//
//	server [-shared] PORT hello | json | random | echo | files [ROOT]
//
// The handlers are what one writes in Go. GOMAXPROCS is as many as the CPUs it may run on. -shared
// is for several processes on one port, where one may not have descriptors enough.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const soReusePort = 15 // of Linux; package syscall has no name for it

type user struct {
	ID     int    `json:"id"`
	Name   string `json:"name"`
	Active bool   `json:"active"`
}

func hello(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, "Hello, World!\n")
}

func getUser(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/users/"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	body, err := json.Marshal(user{id, "Ann", true})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Frame-Options", "DENY")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Type", "application/json")
	w.Write(body)
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

func random(w http.ResponseWriter, r *http.Request) {
	number, _ := strconv.ParseFloat(r.URL.Query().Get("number"), 64)
	time.Sleep(time.Second)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprint(w, math.Round(rand.Float64()*number))
}

func share(network, address string, connection syscall.RawConn) error {
	var failure error
	err := connection.Control(func(fd uintptr) {
		failure = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, soReusePort, 1)
	})
	if err != nil {
		return err
	}
	return failure
}

func main() {
	shared := flag.Bool("shared", false, "share the port with others that do so")
	flag.Parse()
	mux := http.NewServeMux()
	switch flag.Arg(1) {
	case "hello":
		mux.HandleFunc("/", hello)
	case "json":
		mux.HandleFunc("/users/", getUser)
	case "random":
		mux.HandleFunc("/random", random)
	case "echo":
		mux.HandleFunc("/echo", echo)
	case "files":
		mux.Handle("/", http.FileServer(http.Dir(flag.Arg(2))))
	default:
		log.Fatal("usage: server [-shared] PORT hello | json | random | files [ROOT]")
	}
	config := net.ListenConfig{}
	if *shared {
		config.Control = share
	}
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:"+flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%v/\n", listener.Addr())
	log.Fatal(http.Serve(listener, mux))
}
