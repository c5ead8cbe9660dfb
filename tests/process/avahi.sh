#!/bin/sh
# Runs a message bus and an Avahi of its own: avahi.sh DIRECTORY HOST. Both end with this process; the bus is DIRECTORY/bus.
set -eu
directory=$1
cat >"$directory/bus.conf" <<XML
<busconfig>
  <type>system</type>
  <listen>unix:path=$directory/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
    <allow user="*"/>
  </policy>
</busconfig>
XML
cat >"$directory/avahi.conf" <<CONF
[server]
host-name=$2
use-ipv6=no
allow-interfaces=eth0
[wide-area]
enable-wide-area=no
CONF
# The system's own Avahi keeps its process number here.
mkdir -p /run/avahi-daemon
mount -t tmpfs none /run/avahi-daemon
dbus-daemon --config-file="$directory/bus.conf" --nofork --nopidfile &
while [ ! -S "$directory/bus" ]; do sleep 0.05; done
export DBUS_SYSTEM_BUS_ADDRESS="unix:path=$directory/bus"
exec avahi-daemon --file="$directory/avahi.conf" --no-drop-root --no-chroot --no-rlimits
