#!/bin/sh
# The first process of a node: makes the paths that its programs use its own, waits for its cable, starts them.
# Usage: node.sh DIRECTORY ADDRESS GATEWAY. It prints "here" and reads a line once eth0 is there.
set -e
directory=$1 address=$2 gateway=$3

mount --make-rprivate /
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
mkdir -p /run/netns /var/lib/cni
for path in /var/lib/kubelet /var/lib/containerd /var/log; do
    mkdir -p "$directory/root$path" "$path"
    mount --bind "$directory/root$path" "$path"
done
mount --make-shared /var/lib/kubelet
# A kubelet sets these for the whole machine unless it finds what it wants.
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    found=/run/$(echo "${setting%=*}" | tr / .)
    printf %s "${setting#*=}" > "$found"
    mount --bind "$found" "/proc/sys/${setting%=*}"
done

echo here
read -r _
ip link set lo up
ip address add "$address" dev eth0
ip link set eth0 up
ip route add default via "$gateway"
while read -r subnet node; do
    ip route add "$subnet" via "$node"
done < "$directory/routes"
for setting in ipv4/ip_forward bridge/bridge-nf-call-iptables; do
    echo 1 > "/proc/sys/net/$setting"
done

start() {
    "$directory/$1.sh" >> "$directory/logs/$1.log" 2>&1
}
start containerd &
start kube-proxy &
# A kubelet without a runtime ends, and is started again by whatever manages a machine's services.
while :; do
    [ ! -S /run/containerd/containerd.sock ] || start kubelet
    sleep 0.1
done
