# Where SQLite's tests ask for a database file's size or its bytes, a pool answers with those of the database in it: what the file would
# be without Stele. Each interpreter of testfixture evaluates this once. The commands pool_* are in pool_files.c.
rename file pool_file
proc file {what args} {
  if {$what eq "size" && [llength $args] == 1 && [pool_is [lindex $args 0]]} { return [pool_size [lindex $args 0]] }
  uplevel 1 [list pool_file $what {*}$args]
}
rename hexio_read pool_hexio_read
proc hexio_read {name at count} {
  if {![pool_is $name]} { return [pool_hexio_read $name $at $count] }
  set bytes [pool_read $name $at $count]
  binary scan $bytes H* hex
  return [string toupper $hex]
}
rename hexio_write pool_hexio_write
proc hexio_write {name at hex} {
  if {![pool_is $name]} { return [pool_hexio_write $name $at $hex] }
  pool_write $name $at [binary format H* $hex]
  return [expr {[string length $hex] / 2}]
}
# A pool that a test opens as a file is a copy of the database's bytes; those of a file opened for writing go back when it is closed.
rename open pool_open
proc open {name args} {
  if {[string index $name 0] eq "|" || ![pool_is $name]} { return [uplevel 1 [list pool_open $name {*}$args]] }
  set mode [lindex $args 0]
  if {[string match w* $mode]} { return [uplevel 1 [list pool_open $name {*}$args]] }
  set copy $name-bytes
  set out [pool_open $copy wb]
  puts -nonewline $out [pool_read $name 0 [pool_size $name]]
  pool_close $out
  set channel [pool_open $copy {*}$args]
  set ::pool_channels($channel) [list $name $copy [regexp {\+|RDWR|WRONLY} $mode]]
  return $channel
}
rename close pool_close
proc close {channel args} {
  set result [uplevel 1 [list pool_close $channel {*}$args]]
  if {[info exists ::pool_channels($channel)]} {
    lassign $::pool_channels($channel) name copy writes
    unset ::pool_channels($channel)
    if {$writes} {
      set in [pool_open $copy rb]
      pool_write $name 0 [read $in]
      pool_close $in
    }
    pool_file delete $copy
  }
  return $result
}
# A pool belongs to one process, so the tests of several clients run with connections of one: without their first pass, which starts
# further processes.
rename source pool_source
proc source {args} {
  set result [uplevel 1 [list pool_source {*}$args]]
  if {[pool_file tail [lindex $args end]] eq "lock_common.tcl" && [pool_here]} {
    proc ::do_multiclient_test {varname script} [string map {{[permutation]=="unix-excl"} 1} [info body ::do_multiclient_test]]
  }
  return $result
}
