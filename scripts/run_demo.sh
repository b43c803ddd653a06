#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# run_demo.sh BUILD - what `make run` shows: Debian's own ibv_rc_pingpong and
# ib_write_bw, unmodified, each with a server and a client on this host, then
# the two-numbers example. Every process has 60 seconds at most. Captures and
# outputs stay in out/.
set -u

build=$1
softhca=$build/tools/softhca
out=out
limit=60
port=18700
failures=0
server=

mkdir -p "$out"
rm -f "$out"/*.pcap "$out"/*.log "$out"/*.json

cleanup()
{
	[ -z "$server" ] || kill "$server" 2>/dev/null
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# listening PORT: true when some process on this host listens there.
listening()
{
	cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
		grep -q "^ *[0-9]*: [0-9A-F]*:$(printf '%04X' "$1") .* 0A "
}

# free_port: sets $port to one that nobody listens on.
free_port()
{
	port=$((port + 1))
	while listening "$port"; do
		port=$((port + 1))
	done
}

# wait_server: until the server listens, or has ended, or 10 s are over.
wait_server()
{
	tries=100
	while ! listening "$port"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] && kill -0 "$server" 2>/dev/null || return 1
		sleep 0.1
	done
}

# pair NAME SERVER-COMMAND CLIENT-COMMAND: runs both under softhca run, the
# client with 127.0.0.1 added where its command says HOST.
pair()
{
	name=$1
	set -- "$2" "$(echo "$3" | sed 's/HOST/127.0.0.1/')"
	echo "--- $name"
	echo "    server: softhca run $1"
	echo "    client: softhca run $2"
	# The commands are lists of words.
	# shellcheck disable=SC2086
	timeout $limit "$softhca" run --stats "$out/$name.json" \
		--capture "$out/$name.pcap" $1 >"$out/$name.server.log" 2>&1 &
	server=$!
	rc=1
	# shellcheck disable=SC2086
	wait_server && {
		timeout $limit "$softhca" run --stats "$out/$name.json" \
			$2 >"$out/$name.client.log" 2>&1
		rc=$?
	}
	[ $rc = 0 ] || kill "$server" 2>/dev/null
	wait "$server"
	rc_server=$?
	server=
	if [ $rc != 0 ] || [ $rc_server != 0 ]; then
		failures=$((failures + 1))
		echo "    FAILED (client $rc, server $rc_server):"
		tail -n 5 "$out/$name.client.log" "$out/$name.server.log" |
			sed 's/^/    /'
		return 1
	fi
}

# facts NAME: what the counters of both processes say went through the NIC.
facts()
{
	python3 scripts/demo_facts.py "$out/$1.json" | sed 's/^/    /'
}

free_port
pair ibv_rc_pingpong "ibv_rc_pingpong -g 0 -p $port" \
	"ibv_rc_pingpong -g 0 -p $port HOST" && {
	grep -E 'bytes in|iters in' "$out/ibv_rc_pingpong.client.log" |
		sed 's/^/    /'
	facts ibv_rc_pingpong
}

free_port
pair ib_write_bw "ib_write_bw -F -n 200 -p $port" \
	"ib_write_bw -F -n 200 -p $port HOST" && {
	grep -A 1 '#bytes' "$out/ib_write_bw.client.log" | sed 's/^/   /'
	facts ib_write_bw
}

free_port
pair sum "$build/examples/sum_server -n 1 -p $port" \
	"$build/examples/sum_client -p $port HOST 20 22" && {
	sed 's/^/    /' "$out/sum.client.log"
	facts sum
}

if [ $failures = 0 ]; then
	echo "--- All three ran, on no NIC. Their packets, for Wireshark:"
	for f in "$out"/*.pcap; do
		echo "    $f"
	done
else
	echo "--- $failures of 3 failed; their output is in $out/"
fi
exit $failures
